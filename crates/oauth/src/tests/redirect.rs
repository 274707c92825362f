//! Redirect URIs: registered ones, and attempts to redirect the response to another server.

use proptest::{prelude::*, sample::select};

use crate::{RedirectKind, is_registered_redirect};

const WEB: &str = "https://app.example.com/back";

fn passes(uri: &str, registered: &str) -> bool {
    is_registered_redirect(uri, &[registered], false)
}

fn passes_native(uri: &str, registered: &str) -> bool {
    is_registered_redirect(uri, &["https://other.example/", registered], true)
}

#[test]
fn a_registered_uri_must_match_exactly() {
    assert!(is_registered_redirect(WEB, &["https://app.example.com/", WEB], false));
    assert!(is_registered_redirect(WEB, &[WEB], true));
    assert!(!is_registered_redirect(WEB, &[], false));
    assert!(passes("https://app.example.com/back?a=b&c", "https://app.example.com/back?a=b&c"));
    assert!(passes("https://münchen.example/", "https://münchen.example/"));
}

#[test]
fn manipulated_uris_are_rejected() {
    for uri in [
        // a name before the host
        "https://app.example.com@evil.example/back",
        "https://app.example.com%40evil.example/back",
        "https://evil.example@app.example.com/back",
        "https://app.example.com:443@evil.example/back",
        // backslashes
        "https://app.example.com\\@evil.example/back",
        "https://evil.example\\@app.example.com/back",
        "https:\\\\app.example.com\\back",
        "https://app.example.com\\back",
        // slashes
        "//app.example.com/back",
        "https:/app.example.com/back",
        "https:app.example.com/back",
        "https:///app.example.com/back",
        "https://app.example.com//back",
        "https://app.example.com/back/",
        "https://app.example.com",
        // dots
        "https://app.example.com/./back",
        "https://app.example.com/back/../back",
        "https://app.example.com/back/..",
        "https://app.example.com/back/..;/evil",
        "https://app.example.com./back",
        "https://app.example.com.evil.example/back",
        "https://evil.app.example.com/back",
        "https://appexample.com/back",
        // case
        "https://APP.example.com/back",
        "HTTPS://app.example.com/back",
        "https://app.example.com/Back",
        // percent forms
        "https://app.example.com/%62ack",
        "https://app.example.com%2Fback",
        "https://app.example.com/back%2F..%2Fevil",
        "https://app.example.com/back%00",
        "https://app.example.com/back%23",
        // added query and fragment
        "https://app.example.com/back?",
        "https://app.example.com/back?next=https://evil.example",
        "https://app.example.com/back#",
        "https://app.example.com/back#evil",
        "https://app.example.com/back;a=b",
        // port
        "https://app.example.com:443/back",
        "https://app.example.com:8443/back",
        "https://app.example.com:/back",
        // Unicode host
        "https://аpp.example.com/back",
        "https://app.example.com／back",
        "https://app。example.com/back",
        "https://app.example.com\u{200b}/back",
        "https://ａpp.example.com/back",
        "https://app.example.com℀/back",
        // other schemes, white space
        "http://app.example.com/back",
        "javascript://app.example.com/back",
        " https://app.example.com/back",
        "https://app.example.com/back ",
        "https://app.example.com/back\n",
        "https://app.example.com/back\0",
        "https://app.example.com/bac",
        "https://app.example.com/backs",
        "https://*.example.com/back",
        "",
    ] {
        assert!(!passes(uri, WEB), "{uri}");
        assert!(!passes_native(uri, WEB), "{uri}");
    }
}

#[test]
fn the_loopback_port_of_a_native_application_may_differ() {
    for (uri, registered, is_accepted) in [
        ("http://127.0.0.1:51004/back", "http://127.0.0.1/back", true),
        ("http://127.0.0.1:51004/back", "http://127.0.0.1:1234/back", true),
        ("http://127.0.0.1/back", "http://127.0.0.1:1234/back", true),
        ("http://[::1]:51004/back?a=b", "http://[::1]/back?a=b", true),
        ("http://127.0.0.1:65535", "http://127.0.0.1", true),
        // nothing else may
        ("http://127.0.0.1:51004/back/", "http://127.0.0.1/back", false),
        ("http://127.0.0.1:51004/back?a", "http://127.0.0.1/back", false),
        ("http://127.0.0.1:51004/back#a", "http://127.0.0.1/back", false),
        ("http://127.0.0.1:51004/", "http://127.0.0.1", false),
        ("http://127.0.0.1:51004/back", "http://[::1]/back", false),
        ("http://127.0.0.2:51004/back", "http://127.0.0.1/back", false),
        ("http://127.1:51004/back", "http://127.0.0.1/back", false),
        ("http://[0::1]:51004/back", "http://[::1]/back", false),
        ("HTTP://127.0.0.1:51004/back", "http://127.0.0.1/back", false),
        ("https://127.0.0.1:51004/back", "https://127.0.0.1/back", false),
        ("https://127.0.0.1:51004/back", "http://127.0.0.1/back", false),
        // `localhost` may resolve to another address
        ("http://localhost:51004/back", "http://localhost/back", false),
        ("http://localhost:51004/back", "http://127.0.0.1/back", false),
        ("http://localhost:51004/back", "http://localhost:51004/back", true),
        // no port, or an invalid one
        ("http://127.0.0.1:/back", "http://127.0.0.1/back", false),
        ("http://127.0.0.1:0/back", "http://127.0.0.1/back", false),
        ("http://127.0.0.1:080/back", "http://127.0.0.1/back", false),
        ("http://127.0.0.1:65536/back", "http://127.0.0.1/back", false),
        ("http://127.0.0.1:+80/back", "http://127.0.0.1/back", false),
        ("http://127.0.0.1:-1/back", "http://127.0.0.1/back", false),
        ("http://127.0.0.1:٨٠/back", "http://127.0.0.1/back", false),
        ("http://127.0.0.1:80:80/back", "http://127.0.0.1/back", false),
        // another host
        ("http://127.0.0.1:80@evil.example/back", "http://127.0.0.1/back", false),
        ("http://127.0.0.1@evil.example/back", "http://127.0.0.1/back", false),
        ("http://127.0.0.1.evil.example/back", "http://127.0.0.1/back", false),
        ("http://127.0.0.1:80.evil.example/back", "http://127.0.0.1/back", false),
        ("http://127.0.0.1\\.evil.example/back", "http://127.0.0.1/back", false),
        // even if it were registered
        ("http://127.0.0.1:80.evil.example/", "http://127.0.0.1.evil.example/", false),
        ("http://127.0.0.1.evil.example/", "http://127.0.0.1:80.evil.example/", false),
        ("http://127.0.0.1:80\\back", "http://127.0.0.1\\back", false),
        ("http://127.0.0.1:80@evil.example/", "http://127.0.0.1@evil.example/", false),
        ("http://evil.example\\@127.0.0.1/back", "http://127.0.0.1/back", false),
        ("http://[::1].evil.example/back", "http://[::1]/back", false),
    ] {
        assert_eq!(passes_native(uri, registered), is_accepted, "{uri} {registered}");
        assert_eq!(passes(uri, registered), is_accepted && uri == registered, "{uri} {registered}");
    }
}

#[test]
fn private_use_schemes_are_for_native_applications() {
    for uri in [
        "com.example.app:/back",
        "com.example.app://back",
        "msauth.com.example://auth",
        "myapp://cb",
        "msal01970000-0000-7000-8000-000000000000://auth",
        "ms-app://s-1-15-2-1/",
        "ms-appx-web://Microsoft.AAD.BrokerPlugin/01970000",
        "urn:ietf:wg:oauth:2.0:oob",
    ] {
        assert!(passes_native(uri, uri) && !passes(uri, uri), "{uri}");
        assert_eq!(RedirectKind::of(uri), Some(RedirectKind::PrivateScheme));
    }
    for uri in ["http://127.0.0.1/", "http://[::1]:80/a?b", "http://localhost:3000/back", "http://localhost"]
    {
        assert!(passes_native(uri, uri) && passes(uri, uri), "{uri}");
        assert_eq!(RedirectKind::of(uri), Some(RedirectKind::Loopback));
    }
    assert_eq!(RedirectKind::of(WEB), Some(RedirectKind::Web));
    // even if they were registered
    for uri in [
        "http://app.example.com/back",
        "http://localhost.evil.example/",
        "http://localhost@evil.example/",
        "http://evil.example\\@localhost/",
        "http:localhost",
        "https://app.example.com/back#a",
        "com.example.app:/back#a",
        "about:blank",
        "ABOUT:blank",
        "view-source:https://app.example.com/back",
        "ms-settings:x",
        "ms-word:ofe|u|https://app.example.com",
        "javascript:alert(1)",
        "intent://back",
        "mailto:ann@example.com",
        "/back",
        "back",
        ":",
        "",
    ] {
        assert!(!passes_native(uri, uri) && !passes(uri, uri), "{uri}");
        assert_eq!(RedirectKind::of(uri), None, "{uri}");
    }
}

/// The URI without its port, by another algorithm than the code under test.
fn portless(uri: &str) -> Option<String> {
    let host = ["http://127.0.0.1", "http://[::1]"].into_iter().find(|host| uri.starts_with(host))?;
    let mut rest: Vec<char> = uri[host.len()..].chars().collect();
    if rest.first() == Some(&':') {
        rest.remove(0);
        while rest.first().is_some_and(char::is_ascii_digit) {
            rest.remove(0);
        }
    }
    Some([host, &rest.into_iter().collect::<String>()].concat())
}

fn uris() -> impl Strategy<Value = String> {
    let schemes = ["https://", "http://", "HTTP://", "app:/", "//", "https:\\\\", ""];
    let hosts = [
        "127.0.0.1",
        "[::1]",
        "localhost",
        "app.example.com",
        "a@127.0.0.1",
        "127.0.0.1.evil",
        "127.0.0.1@evil",
    ];
    let ports = ["", ":", ":1", ":80", ":65535", ":65536", ":080", ":a", ":1:1", ":1@evil"];
    let paths = ["", "/", "/a", "/A", "//a", "/./a", "/a?b", "/a#b", "\\a", "/%61", "?", "#"];
    (select(schemes.to_vec()), select(hosts.to_vec()), select(ports.to_vec()), select(paths.to_vec()))
        .prop_map(|(scheme, host, port, path)| [scheme, host, port, path].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// Only an exact match or another port on the loopback address passes.
    #[test]
    fn only_exact_matches_and_other_loopback_ports_pass(sent in uris(), registered in uris(), is_native in any::<bool>()) {
        if is_registered_redirect(&sent, &[&registered], is_native) && sent != registered {
            prop_assert!(is_native);
            prop_assert!(portless(&sent).is_some());
            prop_assert_eq!(portless(&sent), portless(&registered));
        }
    }

    /// A web URI with a changed character never passes.
    #[test]
    fn a_changed_uri_never_passes(at in 0_usize..WEB.len(), letter in any::<char>(), is_native in any::<bool>()) {
        let changed = format!("{}{letter}{}", &WEB[..at], &WEB[at + 1..]);
        let longer = format!("{}{letter}{}", &WEB[..at], &WEB[at..]);
        prop_assert_eq!(is_registered_redirect(&changed, &[WEB], is_native), changed == WEB);
        prop_assert!(!is_registered_redirect(&longer, &[WEB], is_native));
    }

    /// Any port of a native application passes.
    #[test]
    fn any_loopback_port_of_a_native_application_passes(port in 1_u16.., path in "(/[a-z?=&]{0,12})?") {
        for host in ["127.0.0.1", "[::1]"] {
            let (sent, registered) = (format!("http://{host}:{port}{path}"), format!("http://{host}{path}"));
            prop_assert!(is_registered_redirect(&sent, &[&registered], true));
            prop_assert!(!is_registered_redirect(&sent, &[&registered], false));
        }
    }

    #[test]
    fn any_other_text_is_rejected(sent in "\\PC{0,60}", registered in "\\PC{0,60}") {
        prop_assert!(sent == registered || !is_registered_redirect(&sent, &[&registered], true));
    }
}
