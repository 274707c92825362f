//! Composes a mail for sending (RFC 5322, MIME).

use std::time::{Duration, UNIX_EPOCH};

use chancery_record::{MailAddress, Secret};
use lettre::{
    Address, Message,
    address::Envelope,
    message::{
        Mailbox, MultiPart,
        header::{HeaderName, HeaderValue},
    },
};
use serde_json::Value;

use crate::{Kind, outbox::QueuedMail, render};

/// A mail, ready to be sent.
pub struct ComposedMessage {
    pub envelope: Envelope,
    pub content: Vec<u8>,
    /// The sender's domain, for the `EHLO`.
    pub domain: String,
}

/// Composes a mail with text and HTML as alternatives. But for the boundaries of its parts, it is the same at
/// each attempt.
///
/// # Errors
/// The reason why the mail can never be sent, without values of its data.
pub fn compose(mail: &QueuedMail, data: &Secret) -> Result<ComposedMessage, String> {
    let kind = Kind::named(&mail.kind).ok_or("its kind is not known")?;
    let data: Value = serde_json::from_slice(data.expose()).map_err(|_| "its data is not JSON")?;
    let rendered = render(kind, mail.locale.as_deref(), &data)?;

    let sender = mailbox(&mail.sender).ok_or("the sender's address is not valid")?;
    let recipient = address(&mail.recipient).ok_or("the recipient's address is not valid")?;
    let domain = sender.email.domain().to_owned();
    // given, because the one that the library makes by itself comes from headers that it parses by another grammar
    let envelope = Envelope::new(Some(sender.email.clone()), vec![recipient.clone()])
        .map_err(|error| format!("it has no envelope: {error}"))?;
    let written_on = UNIX_EPOCH + Duration::from_millis(u64::try_from(mail.created_on.0).unwrap_or(0));
    // so that no out-of-office note answers it (RFC 3834)
    let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
    let message = Message::builder()
        .message_id(Some(format!("<{}@{domain}>", mail.id)))
        .date(written_on)
        .from(sender)
        .to(Mailbox::new(None, recipient))
        .subject(rendered.subject)
        .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
        .envelope(envelope)
        .multipart(MultiPart::alternative_plain_html(rendered.text, rendered.html))
        .map_err(|error| format!("it cannot be written: {error}"))?;
    Ok(ComposedMessage { envelope: message.envelope().clone(), content: message.formatted(), domain })
}

/// Reads `a@example.com` or `Name <a@example.com>`.
fn mailbox(text: &str) -> Option<Mailbox> {
    let (name, address) = MailAddress::read_named(text)?;
    Some(Mailbox::new(name.map(str::to_owned), written(&address)))
}

fn address(text: &str) -> Option<Address> {
    MailAddress::read(text.trim()).as_ref().map(written)
}

/// An address in the library's type. Its validity is known already, by the grammar of stored addresses: the
/// library's own grammar is narrower.
fn written(address: &MailAddress<'_>) -> Address {
    Address::new_dangerous(address.local, &address.domain)
}

#[cfg(test)]
mod tests {
    use chancery_record::{Email, MailAddress, Secret, Timestamp};
    use mail_parser::MessageParser;
    use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof, proptest};
    use uuid::Uuid;

    use super::{ComposedMessage, address, compose, mailbox};
    use crate::outbox::QueuedMail;

    const DATA: &str = r#"{"name": "Jörg Größer", "store": "Bücherei", "link": "https://id.example.com/?a=1&b=2",
        "valid_until": 1795253400000}"#;

    fn mail(sender: &str, recipient: &str) -> QueuedMail {
        QueuedMail {
            id: Uuid::from_u128(7),
            store: 1,
            mfa_instance: None,
            kind: "PasswordReset".into(),
            sender: sender.into(),
            recipient: recipient.into(),
            locale: Some("de".into()),
            sealed_data: Vec::new(),
            created_on: Timestamp(1_795_253_400_000),
            expires_on: Timestamp(1_795_253_400_000),
            attempts: 0,
            place: 1,
        }
    }

    fn composed(mail: &QueuedMail) -> ComposedMessage {
        compose(mail, &Secret::new(DATA)).unwrap()
    }

    #[test]
    fn another_parser_reads_the_same_mail() {
        let message = composed(&mail("Bücherei <noreply@bücher.example>", "joerg@example.com"));
        assert!(message.content.is_ascii());
        assert_eq!(message.domain, "xn--bcher-kva.example");

        let parsed = MessageParser::default().parse(&message.content).unwrap();
        assert_eq!(parsed.subject(), Some("Ihr Kennwort bei Bücherei"));
        let from = parsed.from().unwrap().first().unwrap();
        assert_eq!(from.name(), Some("Bücherei"));
        assert_eq!(from.address(), Some("noreply@xn--bcher-kva.example"));
        assert_eq!(parsed.message_id(), Some("00000000-0000-0000-0000-000000000007@xn--bcher-kva.example"));
        assert_eq!(parsed.date().unwrap().to_timestamp(), 1_795_253_400);
        assert_eq!(parsed.header_raw("Auto-Submitted").unwrap().trim(), "auto-generated");

        let kind = parsed.root_part();
        assert!(
            kind.is_multipart()
                && String::from_utf8_lossy(&message.content).contains("multipart/alternative")
        );
        assert_eq!(
            (parsed.text_body_count(), parsed.html_body_count(), parsed.attachment_count()),
            (1, 1, 0)
        );
        assert!(parsed.body_text(0).unwrap().starts_with("Guten Tag Jörg Größer,"));
        assert!(parsed.body_html(0).unwrap().contains("<p>Guten Tag Jörg Größer,</p>"));
    }

    #[test]
    fn an_address_cannot_add_a_header_or_a_recipient() {
        for bad in [
            "",
            "a",
            "a@",
            "@example.com",
            "a@b\r\nBcc: c@d",
            "a@b, c@d",
            "a\n@example.com",
            "<a@b>",
            "a b@c",
        ] {
            assert!(address(bad).is_none(), "{bad:?}");
            assert!(compose(&mail("a@example.com", bad), &Secret::new(DATA)).is_err(), "{bad:?}");
        }
        for bad in ["Name\r\nBcc: c@d <a@example.com>", "Name <a@example.com", "Name a@example.com>"] {
            assert!(mailbox(bad).is_none(), "{bad:?}");
        }
        let named = mailbox("\"Chancery, Identity\" <a@example.com>").unwrap();
        assert_eq!(named.name.as_deref(), Some("Chancery, Identity"));
        let message = composed(&mail("\"Chancery, Identity\" <a@example.com>", "b@example.com"));
        assert_eq!(message.envelope.to().len(), 1);
    }

    fn addresses() -> impl Strategy<Value = String> {
        let any_characters = r#"[a-cß😀."\\<>(),:;@\[\]'+ \u{200b}\u{2028}\u{85}-]{0,6}"#;
        let (local, domain) = (
            prop_oneof!["[a-c.+-]{1,6}", any_characters],
            prop_oneof!["[a-c.-]{1,6}", "bücher\\.example", any_characters],
        );
        prop_oneof![(local, domain).prop_map(|(local, domain)| format!("{local}@{domain}")), any::<String>()]
    }

    proptest! {
        /// A valid stored address can be a recipient and a sender, and reaches one recipient.
        #[test]
        fn a_valid_address_can_be_written_to(text in addresses()) {
            let is_valid = Email::new(text.as_str()).is_ok();
            let written = compose(&mail("a@example.com", &text), &Secret::new(DATA));
            prop_assert_eq!(written.is_ok(), is_valid);
            if let Ok(written) = written {
                prop_assert_eq!(written.envelope.to().len(), 1);
                let parsed = MessageParser::default().parse(&written.content).unwrap();
                prop_assert_eq!(parsed.to().map(|to| to.iter().count()), Some(1));
                prop_assert_eq!(parsed.headers().len(), 8);
            }
            let sent = compose(&mail(&text, "a@example.com"), &Secret::new(DATA));
            prop_assert_eq!(sent.is_ok(), MailAddress::read_named(&text).is_some());
        }
    }

    #[test]
    fn a_mail_that_cannot_be_composed_is_refused_without_values() {
        let bad = compose(&mail("a@example.com", "b@example.com"), &Secret::new("{\"name\": \"tulip\"}"));
        let why = bad.err().unwrap();
        assert!(!why.contains("tulip"), "{why}");
        assert!(compose(&mail("a@example.com", "b@example.com"), &Secret::new("tulip")).is_err());
        let mut unknown = mail("a@example.com", "b@example.com");
        unknown.kind = "Greeting".into();
        assert!(compose(&unknown, &Secret::new(DATA)).is_err());
    }
}
