//! The authentication results of a mail, in words.

use groupware_mail::Origin;
use maud::{Markup, html};

/// A sentence, which warns if the mail violates the policy of its sender's domain.
pub(crate) fn words(origin: &Origin) -> Markup {
    match origin {
        Origin::Signed(domain) => confirmed(domain, "its signature"),
        Origin::Sent(domain) => confirmed(domain, "the server that it came from"),
        Origin::Contradicted(domain) => html! {
            p.wrong-summary.origin role="note" {
                "Perhaps not sent by " strong { (domain) } ", which confirms its mail, but not this one. "
                "Be careful with what it asks for."
            }
        },
        Origin::Unconfirmed(domain) => html! {
            p.hint.origin { "Nothing confirms that " (domain) " sent this." }
        },
        Origin::Unknown(domain) => html! {
            p.hint.origin { "When this came, it could not be found out whether " (domain) " sent it." }
        },
    }
}

fn confirmed(domain: &str, by: &str) -> Markup {
    html! { p.hint.origin { "Sent by " strong { (domain) } ": confirmed by " (by) "." } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_confirmed_is_no_confirmation() {
        let told = |origin: fn(String) -> Origin| words(&origin("a<b".to_owned())).into_string();
        let signed = told(Origin::Signed);
        let expected = "Sent by <strong>a&lt;b</strong>: confirmed by its signature.";
        assert!(signed.contains(expected), "{signed}");
        assert!(told(Origin::Sent).contains("confirmed by the server that it came from."));
        for other in [Origin::Contradicted, Origin::Unconfirmed, Origin::Unknown] {
            let text = told(other);
            assert!(!text.contains("confirmed by"), "{text}");
            assert_eq!(
                text.contains("role=\"note\""),
                text.contains("Perhaps not sent")
            );
        }
    }
}
