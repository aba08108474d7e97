//! The report to the sender that a message didn't reach all its recipients (RFC 3464).

use std::borrow::Cow;

use bytes::Bytes;
use groupware_proto_mime::{Head, cut};
use mail_builder::MessageBuilder;
use mail_builder::headers::HeaderType;
use mail_builder::headers::address::Address;
use mail_builder::headers::content_type::ContentType;
use mail_builder::headers::date::Date;
use mail_builder::headers::message_id::MessageId;
use mail_builder::headers::raw::Raw;
use mail_builder::headers::text::Text;
use mail_builder::mime::{BodyPart, MimePart};

use crate::{Context, Unid, limits};

/// The maximum size of the message's header in its report.
const HEAD_BYTES: usize = 16 << 10;

/// Builds the report on a message of the owner that didn't reach users with a full account. `unid` is the report's id.
pub(crate) fn report(
    context: &Context<'_>,
    unid: Unid,
    message: &[u8],
    users: &[&String],
) -> Bytes {
    let directory = context.directory;
    let domain = directory.domain();
    let addresses: Vec<String> = users.iter().map(|user| directory.email(user)).collect();
    let head = Head::of(message);
    let parsed = head.parse();
    let subject = parsed
        .as_ref()
        .and_then(|it| it.subject())
        .unwrap_or_default();
    let subject = cut(subject, limits::SUBJECT_BYTES);
    let mut builder = MessageBuilder::new()
        .date(Date::new(context.now_us / 1_000_000))
        .from(Address::new_address(
            Some("Mail delivery"),
            format!("MAILER-DAEMON@{domain}"),
        ))
        .to(Address::new_address(
            None::<&str>,
            directory.email(context.mailbox),
        ))
        .message_id(MessageId::new(format!("{unid}@{domain}")))
        // RFC 3834, 5: automatic responders don't answer it.
        .header("Auto-Submitted", HeaderType::Raw(Raw::new("auto-replied")))
        .subject(Text::new(format!("Not delivered to all: {subject}")));
    if let Some(id) = parsed.as_ref().and_then(|it| it.message_id()) {
        builder = builder.in_reply_to(MessageId::new(id.to_owned()));
    }
    let seed = unid.to_string();
    let content_type = ContentType::new("multipart/report")
        .attribute("report-type", "delivery-status")
        .attribute("boundary", format!("report_{seed}"));
    let status = MimePart::new(
        "message/delivery-status",
        BodyPart::Text(Cow::Owned(status(domain, &addresses))),
    );
    let head = String::from_utf8_lossy(&message[..head_bytes(message)]);
    let head = MimePart::new("text/rfc822-headers", BodyPart::Text(head));
    let parts = vec![
        MimePart::new("text/plain", BodyPart::Text(Cow::Owned(text(&addresses)))),
        status.attachment("status.txt"),
        head.attachment("head.txt"),
    ];
    let mut built = Vec::with_capacity(4 << 10);
    builder
        .body(MimePart::new(content_type, parts))
        .serialize(&mut built);
    built.into()
}

/// The text for the sender.
fn text(addresses: &[String]) -> String {
    let mut text = "This message could not be delivered to:\r\n\r\n".to_owned();
    for address in addresses {
        text += &format!("  {address}: the mailbox is full\r\n");
    }
    text + "\r\nAll other recipients have it. Send it again to these when they have made room.\r\n"
}

/// The machine-readable part (RFC 3464, 2): one block for the server, and one for each recipient.
fn status(domain: &str, addresses: &[String]) -> String {
    let mut status = format!("Reporting-MTA: dns; {domain}\r\n");
    for address in addresses {
        status += &format!(
            "\r\nFinal-Recipient: rfc822; {address}\r\nAction: failed\r\nStatus: 5.2.2\r\n"
        );
    }
    status
}

/// The length of a message's header; if it is long, of a part that ends with a line.
fn head_bytes(message: &[u8]) -> usize {
    let most = &message[..message.len().min(HEAD_BYTES)];
    let ends = most.windows(4).position(|it| it == b"\r\n\r\n");
    let ends = ends.map(|at| at + 2);
    let ends = ends.or_else(|| {
        most.windows(2)
            .position(|it| it == b"\n\n")
            .map(|at| at + 1)
    });
    let last_line = || {
        most.iter()
            .rposition(|byte| *byte == b'\n')
            .map(|at| at + 1)
    };
    ends.or_else(last_line).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_head_alone() {
        for (message, expected) in [
            ("A: b\r\nC: d\r\n\r\ntext\r\n\r\n", "A: b\r\nC: d\r\n"),
            ("A: b\n\ntext", "A: b\n"),
            ("A: b\r\nC: d", "A: b\r\n"),
            ("A", ""),
            ("", ""),
        ] {
            let end = head_bytes(message.as_bytes());
            assert_eq!(&message[..end], expected, "{message:?}");
        }
        let long = format!("A: b\r\nC: {}\r\n\r\n", "x".repeat(HEAD_BYTES));
        assert_eq!(head_bytes(long.as_bytes()), "A: b\r\n".len());
    }
}
