//! Any text is a path of a PATCH or is refused, and any bytes are a body; never a panic.

#![no_main]

use chancery_record::{Json, read_json};
use chancery_scim::{GROUP, Home, Patch, Resource, USER, condition_of};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for of in [&USER, &GROUP] {
        for home in [Home::Provider, Home::Store] {
            if let Ok(body) = read_json(bytes) {
                run(of, home, &body);
            }
            let Ok(path) = std::str::from_utf8(bytes) else { continue };
            let _ = condition_of(of, home, path);
            for op in ["add", "replace", "remove"] {
                let members = [("op", op), ("path", path), ("value", "x")];
                let operation = members.map(|(name, text)| (name.to_owned(), Json::Text(text.to_owned())));
                let operations = Json::Array(vec![Json::Object(operation.into())]);
                run(of, home, &Json::Object(vec![("Operations".to_owned(), operations)]));
            }
        }
    }
});

fn run(of: &'static chancery_scim::ResourceType, home: Home, body: &Json) {
    let outcome = Patch::read(of, home, body).and_then(|patch| patch.apply(&Resource::new()));
    if let Err(refusal) = outcome {
        assert!(!refusal.detail.is_empty());
    }
}
