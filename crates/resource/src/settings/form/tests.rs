//! Valid and invalid texts of each form.

use proptest::prelude::*;

use super::{Form, flag, links, span};

#[test]
fn lengths_of_time() {
    for (text, expected) in [
        ("00:05:00", Some(300_000)),
        ("7.00:00:00", Some(604_800_000)),
        ("1.02:03:04.5", Some(93_784_500)),
        ("PT1H", Some(3_600_000)),
        ("P7D", Some(604_800_000)),
        ("P1DT12H", Some(129_600_000)),
        ("24:00:00", None),
        ("00:60:00", None),
        ("5", None),
        ("-00:01:00", None),
        ("-PT1H", None),
        ("00:01:00:00", None),
        ("", None),
        ("P1M", None),
    ] {
        assert_eq!(span(text), expected, "{text}");
    }
}

#[test]
fn flags_in_any_case() {
    assert_eq!((flag("True"), flag("FALSE"), flag("yes")), (Some(true), Some(false), None));
    assert!(Form::Number(1, 3).fits("3") && !Form::Number(1, 3).fits("4"));
    assert!(Form::Choice(&["none"]).fits("None") && !Form::Choice(&["none"]).fits("some"));
}

#[test]
fn mail_options_accept_valid_text_only() {
    for (form, good, wrong) in [
        (
            Form::Sender,
            &["a@example.com", "Bücherei <a@example.com>"][..],
            &["nope", "Name a@example.com"][..],
        ),
        (
            Form::Recipients,
            &["a@example.com", "a@example.com, b@example.com,"],
            &["a@example.com, b", "a b@c"],
        ),
        (Form::MailServer, &["{\"Host\":\"mail.example.com\"}"], &["{}", "[]", "{\"Host\":\"a b\"}", "mail"]),
        (
            Form::LinkTemplate,
            &[
                "https://id.example.com/?u={loginName}#{token}",
                "http://localhost:3000/{token}",
                "com.example.app://reset?t={token}",
            ],
            &[
                "https://id.example.com/",
                "javascript://x%0a({token})",
                "/new?t={token}",
                "https://a b/{token}",
                "{token}",
                "https://id.example.com/?u={loginname}#{token}",
                "https://id.example.com/{tenant}/{token}",
                "https://id.example.com/{token",
            ],
        ),
    ] {
        assert!(form.fits("") && good.iter().all(|text| form.fits(text)), "{form:?}");
        assert!(!wrong.iter().any(|text| form.fits(text)), "{form:?}");
    }
}

#[test]
fn passkey_and_provider_options_accept_valid_text_only() {
    let model = "8446ccb9-ab1d-b374-750b-2367ff6f3a1f";
    let plain = model.replace('-', "");
    for (form, good, wrong) in [
        (
            Form::Aaguids,
            vec![
                model,
                plain.as_str(),
                "8446CCB9-AB1D-B374-750B-2367FF6F3A1F, 00000000-0000-0000-0000-000000000000,",
            ],
            vec!["8446ccb9", "a security key", "8446ccb9-ab1d-b374-750b-2367ff6f3a1f; 8446ccb9"],
        ),
        (
            Form::Domain,
            vec!["example.com", "localhost", "Login.Example.COM", "xn--bcher-kva.example"],
            vec![
                "https://example.com",
                "example.com:8443",
                "exa mple.com",
                ".example.com",
                "-a.example",
                "a..b",
            ],
        ),
        (
            Form::Origins,
            vec![
                "https://example.com, http://localhost:3000/",
                "https://example.com/login",
                "android:apk-key-hash:sYUC8p5I9SxqFernBPHmDxz_YVZXmVJdW8s-m3RTTqE",
                "ios:bundle-id:com.example.app",
            ],
            vec![
                "example.com",
                "https://",
                "https:///login",
                "https://a@b",
                "https://a/b?c",
                "https://a/b#c",
                "https://a/b@c",
                "android:apk-key-hash:",
            ],
        ),
        (
            Form::Endpoint,
            vec!["https://sms.example.com/send?x=1", "http://127.0.0.1:8080/"],
            vec![
                "sms.example.com",
                "/send",
                "ftp://sms.example.com",
                "https://",
                "https://a b",
                "https://a/#b",
            ],
        ),
        (
            Form::CallbackPath,
            vec!["/signin-oidc", "/callback/partner"],
            vec![
                "signin-oidc",
                "/",
                "//evil.example",
                "/a?b",
                "/connect/token",
                "/API/x",
                "/console",
                "/device",
                "https://a",
            ],
        ),
    ] {
        assert!(form.fits(""), "{form:?}");
        for text in good {
            assert!(form.fits(text), "{form:?} {text}");
        }
        for text in wrong {
            assert!(!form.fits(text), "{form:?} {text}");
        }
    }
}

#[test]
fn colours_addresses_and_links() {
    for good in ["#fff", "#22406B"] {
        assert!(Form::Colour.fits(good), "{good}");
    }
    for bad in ["fff", "#ffff", "#ggg", "red", "#fff;"] {
        assert!(!Form::Colour.fits(bad), "{bad}");
    }
    assert!(Form::Page.fits("http://example.com/terms") && Form::Page.fits("/terms"));
    assert!(!Form::Page.fits("javascript:alert(1)") && !Form::Page.fits("terms"));
    for good in ["https://example.com/logo.svg", "/assets/global/logo.png"] {
        assert!(Form::Address.fits(good), "{good}");
    }
    for bad in
        ["http://example.com/x", "//example.com", "javascript:alert(1)", "https://", "/a b", "https://a/\"x"]
    {
        assert!(!Form::Address.fits(bad), "{bad}");
    }
    for good in ["https://example.com/terms", "HTTP://intranet/terms", "/terms"] {
        assert!(Form::Page.fits(good), "{good}");
    }
    for good in ["https://example.com/reset?u={loginName}#{token}", "http://localhost:3000/{token}"] {
        assert!(Form::LinkTemplate.fits(good), "{good}");
    }
    for bad in
        ["javascript:alert(1)", " javascript://x", "data:text/html,x", "//example.com", "https://", "terms"]
    {
        assert!(!Form::Page.fits(bad) && !Form::LinkTemplate.fits(bad), "{bad}");
    }
    let text = "Privacy notice https://example.com/p, Imprint /imprint,";
    assert_eq!(links(text), Some(vec![("Privacy notice", "https://example.com/p"), ("Imprint", "/imprint")]));
    for bad in ["https://example.com/p", "Privacy http://example.com", "a /x,".repeat(11).as_str()] {
        assert!(!Form::Links.fits(bad), "{bad}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,40}") {
        let _ = (span(&text), links(&text));
    }

    #[test]
    fn a_clock_is_read_as_written(days in 0i64..9999, seconds in 0i64..86_400) {
        let clock = format!("{days}.{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        prop_assert_eq!(span(&clock), Some((days * 86_400 + seconds) * 1000));
    }
}

#[test]
fn scopes_resources_and_names_accept_valid_text_only() {
    let long = "x".repeat(201);
    for (form, good, wrong) in [
        (
            Form::Scopes,
            vec!["email", "email, groups", "https://api.example/read offline_access"],
            vec!["a\"b", "caf\u{e9}", "a\\b"],
        ),
        (
            Form::Resources,
            vec!["https://api.example/", "urn:ledger, https://api.example/a?b=c"],
            vec!["nowhere", "https://api.example/#part", "https://a/\"", "urn:"],
        ),
        (
            Form::Identifiers,
            vec!["0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f", "one, two", "contoso.example"],
            vec!["one; two", "\"one\"", "f\u{fc}r"],
        ),
        (
            Form::Name,
            vec!["UserStore", "https://issuer.example", "B\u{fc}cherei: Nord"],
            vec![" UserStore", "UserStore ", "User\nStore", long.as_str()],
        ),
        (
            Form::AuthenticatorIssuer,
            vec!["Harbour Office", "B\u{fc}cherei"],
            vec!["Harbour: Office", "Harbour\tOffice", " Harbour", long.as_str()],
        ),
    ] {
        assert!(form.fits(""), "{form:?}");
        for text in good {
            assert!(form.fits(text), "{form:?} {text}");
        }
        for text in wrong {
            assert!(!form.fits(text), "{form:?} {text}");
        }
    }
}
