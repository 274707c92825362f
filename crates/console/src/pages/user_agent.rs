//! The origin of a sign-in attempt: browser and network address.

use serde_json::Value;

use crate::shell::fields::plain;

/// The browser and the address of a sign-in record, as far as it contains them: they are erased with the person.
pub fn origin(record: &Value) -> String {
    let member = |name: &str| record.get(name).map_or_else(String::new, plain);
    let parts = [browser(&member("userAgent")), member("address")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// The browser and the system in a `User-Agent`; empty if none is known.
fn browser(agent: &str) -> String {
    // newer browsers also contain the names of those they are compatible with
    let browsers = [("Edg", "Edge"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari")];
    let systems = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ];
    let named = |known: &[(&str, &'static str)]| {
        known.iter().find(|(mark, _)| agent.contains(mark)).map(|(_, name)| *name)
    };
    [named(&browsers), named(&systems)].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::browser;

    #[test]
    fn browsers_are_known_by_their_names() {
        let chrome = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
        let edge = format!("{chrome} Edg/140.0.0.0");
        let firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
        assert_eq!(browser(chrome), "Chrome, Windows");
        assert_eq!(browser(&edge), "Edge, Windows");
        assert_eq!(browser(firefox), "Firefox, Linux");
        assert_eq!(browser("curl/8"), "");
    }
}
