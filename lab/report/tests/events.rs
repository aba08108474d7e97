//! Times of events, beside the other figures of steps.

use crate::support::{Made, Shape, WORKLOAD};
use lab_report::write::html;

#[test]
fn events_have_a_section_where_a_step_listens() {
    let section = |events: bool| {
        let shape = Shape {
            events,
            ..Shape::default()
        };
        let listening = "request: POST /login\n      events: { count: 2 }";
        let made = Made {
            workload: WORKLOAD.replace("request: POST /login", listening),
            ..Made::both(&shape)
        };
        let page = html(&made.analysis());
        let (_, rest) = page.split_once("<h2>Events: ")?;
        Some(rest.split("</table>").next()?.replace("<tr>", "\n<tr>"))
    };
    insta::assert_snapshot!(section(true).expect("a section"));
    assert_eq!(section(false), None);
}
