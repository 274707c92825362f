//! Rendering of templates, and the security headers of pages.

use std::sync::LazyLock;

use chancery_resource::Problem;
use chancery_web::{AnswerBody, respond};
use http::{HeaderName, HeaderValue, Response, header};
use minijinja::{
    AutoEscape, Environment, UndefinedBehavior, Value as Data,
    value::{Serde, merge_maps},
};
use serde_json::Value;

use super::words::Words;

/// Declares the templates, each a file in `templates`.
macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        /// The templates, by name.
        static TEMPLATES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../templates/", $name)))),*];
    };
}

templates![
    "again.html",
    "base.html",
    "call.html",
    "card.html",
    "cards.html",
    "cell.html",
    "certificate.html",
    "code-device.html",
    "code-end.html",
    "code-flow.html",
    "code-keys.html",
    "code-machine.html",
    "code-page.html",
    "code-web.html",
    "configuration.html",
    "confirm.html",
    "copy.html",
    "difference.html",
    "editor-failed.html",
    "editor.html",
    "entry.html",
    "errors.html",
    "field.html",
    "find-results.html",
    "find.html",
    "group-tree.html",
    "head.html",
    "held.html",
    "import.html",
    "item.html",
    "kinds.html",
    "list-part.html",
    "list.html",
    "merge.html",
    "message.html",
    "pass.html",
    "node.html",
    "overview.html",
    "plain.html",
    "registered.html",
    "relation.html",
    "replacement.html",
    "review.html",
    "rights.html",
    "rows.html",
    "rules.html",
    "safety.html",
    "section.html",
    "setup.html",
    "shell.html",
    "tree-nodes.html",
    "tree.html",
    "trial.html",
    "wait.html",
];

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    // the built-in filters stay disabled, as in customers' views
    environment.add_filter("length", |value: Data| value.len().unwrap_or(0));
    environment
        .add_filter("default", |value: Data, other: Data| if value.is_undefined() { other } else { value });
    environment.add_test("none", Data::is_none);
    for (name, text) in TEMPLATES {
        if let Err(error) = environment.add_template(name, text) {
            tracing::error!(%error, name, "a template of the console cannot be read");
        }
    }
    environment
});

/// Renders a template with the texts of the context's language, which `lang` names.
///
/// # Errors
/// The template uses a variable that the context lacks.
pub fn fill(template: &str, context: &Value) -> Result<String, minijinja::Error> {
    let words = Words::of(context.get("lang").and_then(Value::as_str));
    let filled = merge_maps([Data::from(Serde(context)), words.in_templates.clone()]);
    ENVIRONMENT.get_template(template)?.render(filled)
}

/// The content security policy of pages.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; \
    connect-src 'self'; form-action 'self'; frame-src 'none'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types console";
/// The permissions policy of pages: passkeys only.
const PERMISSIONS: &str = "publickey-credentials-get=(self), publickey-credentials-create=(self), \
    accelerometer=(), autoplay=(), camera=(), clipboard-read=(), display-capture=(), encrypted-media=(), fullscreen=(), \
    geolocation=(), gyroscope=(), hid=(), idle-detection=(), magnetometer=(), microphone=(), midi=(), payment=(), \
    picture-in-picture=(), screen-wake-lock=(), serial=(), sync-xhr=(), usb=(), xr-spatial-tracking=()";

/// Answers with a page.
///
/// # Errors
/// The template uses a variable that the context lacks.
pub fn page(status: u16, template: &str, context: &Value) -> Result<Response<AnswerBody>, Problem> {
    let html = fill(template, context).map_err(|error| {
        tracing::error!(%error, template, "a page of the console cannot be made");
        chancery_store::Error::Internal("a page of the console cannot be made".into())
    })?;
    Ok(guarded(status, html))
}

/// An HTML response with the security headers.
pub fn guarded(status: u16, html: String) -> Response<AnswerBody> {
    let mut response = respond(status, "text/html; charset=utf-8", html);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(opener, HeaderValue::from_static("same-origin"));
    let permissions = HeaderName::from_static("permissions-policy");
    headers.insert(permissions, HeaderValue::from_static(PERMISSIONS));
    response
}

/// The same page, which may embed pages of this server in frames.
pub fn with_frames(mut response: Response<AnswerBody>) -> Response<AnswerBody> {
    let policy = POLICY.replace("frame-src 'none'", "frame-src 'self'");
    set(&mut response, header::CONTENT_SECURITY_POLICY, &policy);
    response
}

/// The same page, which pages of this server may embed in frames.
pub fn with_frame_of_ours(mut response: Response<AnswerBody>) -> Response<AnswerBody> {
    let policy = POLICY.replace("frame-ancestors 'none'", "frame-ancestors 'self'");
    set(&mut response, header::CONTENT_SECURITY_POLICY, &policy);
    set(&mut response, header::X_FRAME_OPTIONS, "SAMEORIGIN");
    response
}

fn set(response: &mut Response<AnswerBody>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        response.headers_mut().insert(name, value);
    }
}

/// A JSON response for the page's own script, which is not cached.
pub fn data(value: &Value) -> Response<AnswerBody> {
    let mut response = respond(200, "application/json", value.to_string());
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A redirect to a GET request.
pub fn see_other(address: &str) -> Response<AnswerBody> {
    let mut response = respond(303, "text/plain", "");
    if let Ok(address) = HeaderValue::try_from(address) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    response
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ENVIRONMENT, TEMPLATES, fill};

    #[test]
    fn every_template_can_be_read() {
        for (name, _) in TEMPLATES {
            assert!(ENVIRONMENT.get_template(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn every_file_is_a_template() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        for file in files {
            assert!(TEMPLATES.iter().any(|(name, _)| *name == file), "{file:?}");
        }
    }

    /// Every sample page can be rendered, in each language: templates use no variables that pages lack.
    #[test]
    fn every_sample_can_be_filled() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
        let read = |path: &std::path::Path| -> Value {
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
        };
        let mut filled = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let sample = read(&path);
            let Some(template) = sample.get("template").and_then(Value::as_str) else { continue };
            for tag in ["en", "de"] {
                let mut context = read(&folder.join(format!("shell.{tag}.json")));
                let given = json!({ "lang": tag });
                for members in [&sample, &given] {
                    context.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
                }
                let page = fill(template, &context);
                assert!(page.is_ok(), "{}: {:?}", path.display(), page.err());
                filled += 1;
            }
        }
        assert!(filled > 20, "{filled}");
    }

    /// Templates contain no inline script, style or handler: the policy would block it. Nothing is rendered unescaped.
    #[test]
    fn templates_contain_no_inline_script() {
        for (name, text) in TEMPLATES {
            for forbidden in
                ["style=", " onclick", " onload", "|safe", "| safe", "<style", "javascript:", "macro "]
            {
                assert!(!text.contains(forbidden), "{name} has {forbidden}");
            }
            // any handler: an attribute whose name starts with `on`
            for rest in text.split(" on").skip(1) {
                let word: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
                let is_handler =
                    rest.get(word.len()..).is_some_and(|rest| rest.trim_start().starts_with('='));
                assert!(word.is_empty() || !is_handler, "{name} has on{word}");
            }
        }
    }
}
