//! A page's operation as a curl command to copy.

use chancery_resource::Method;
use chancery_web::Input;

use super::{directory::encoded, visit::Visit};

/// An input as a curl command. Operations that write become dry runs, so that trying the command changes nothing.
pub fn call(visit: &Visit<'_>, input: &Input) -> String {
    let method = match input.op.method {
        Method::Get => String::new(),
        method => format!("-X {} ", method.name()),
    };
    let body = input.body.as_ref().map_or_else(String::new, |body| {
        let text = body.to_string().replace('\'', "'\\''");
        format!(" -H 'Content-Type: application/json' \\\n  -d '{text}'")
    });
    let dry_run = (!method.is_empty()).then_some(("dryRun", "true"));
    let query = input.query.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(dry_run);
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    let query = if query.is_empty() { query } else { format!("?{query}") };
    format!("curl {method}-H \"Authorization: Bearer $TOKEN\"{body} \\\n  '{}{query}'", address(visit, input))
}

/// The URL of an operation, with the input's values in place of the path parameters.
fn address(visit: &Visit<'_>, input: &Input) -> String {
    let base = match (&visit.store, input.op.path.starts_with("/administration")) {
        (Some(store), true) => format!("/api/userstore/v2/{}", encoded(store)),
        _ => "/api/management/v2".to_owned(),
    };
    let mut values = input.path.iter();
    let segments = input.op.path.split('/').map(|segment| {
        let value = segment.starts_with('{').then(|| values.next()).flatten();
        value.map_or_else(|| segment.to_owned(), |value| encoded(value))
    });
    let path = segments.collect::<Vec<_>>().join("/");
    format!("{}{base}{path}", visit.app.token_service.public_url)
}
