//! Tests of `addresses`.

use proptest::prelude::*;

use super::*;

fn range(text: &str) -> Option<Vec<String>> {
    let range: AddressRange = text.parse().ok()?;
    Some(
        range
            .addresses()
            .map(|address| address.to_string())
            .collect(),
    )
}

#[test]
fn ranges_have_both_ends() {
    let three = ["127.0.0.254", "127.0.0.255", "127.0.1.0"];
    assert_eq!(range("127.0.0.254-127.0.1.0").unwrap(), three);
    assert_eq!(range(" 10.0.0.7 ").unwrap(), ["10.0.0.7"]);
    assert_eq!(range("fd00::1-fd00::2").unwrap(), ["fd00::1", "fd00::2"]);
    assert_eq!(range("::1-::1").unwrap(), ["::1"]);
    for wrong in [
        "",
        "a",
        "10.0.0.2-10.0.0.1",
        "10.0.0.1-::1",
        "10.0.0.0-11.0.0.0",
        "1.1.1.1-",
    ] {
        assert_eq!(range(wrong), None, "{wrong}");
    }
}

proptest! {
    #[test]
    fn a_printed_range_reads_as_the_same(first in any::<u32>(), more in 0u32..4096) {
        let last = first.saturating_add(more);
        let text = format!("{}-{}", Ipv4Addr::from_bits(first), Ipv4Addr::from_bits(last));
        let range: AddressRange = text.parse().unwrap();
        prop_assert_eq!(range.to_string().parse::<AddressRange>().unwrap(), range);
        prop_assert_eq!(range.addresses().count() as u32, last - first + 1);
    }

    #[test]
    fn any_text_is_a_range_or_refused(text in "\\PC{0,40}") {
        let _ = text.parse::<AddressRange>();
    }
}
