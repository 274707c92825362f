//! The shipped pages, which a customer's own can be based on.
//!
//! The folder `samples` shows the context of each ([`samples`]). All of them take `nonce`, `brand` (`name`, `logo`,
//! `colour`), `errors` (`code`, and `field` where the error is a field's), `links` and `languages`
//! (`name` and `url`, `tag`); pages with a form take `action` and `csrf`.

/// The heading of a page whose brand has no name.
pub(crate) const NAME: &str = "Chancery";

macro_rules! templates {
    ($($name:literal),*) => { [$(($name, include_str!(concat!("../templates/", $name, ".html")))),*] };
}

macro_rules! views {
    ($($name:literal),*) => {
        const NAMES: &[&str] = &[$($name),*];
        const VIEWS: [(&str, &str); NAMES.len()] = templates!($($name),*);
        const SAMPLES: [(&str, &str); NAMES.len()] =
            [$(($name, include_str!(concat!("../samples/", $name, ".json")))),*];
    };
}

views!(
    "Layout",
    "SignIn",
    "AccessPass",
    "SecondFactor",
    "Enrol",
    "Passkey",
    "Confirm",
    "Questionnaire",
    "Terms",
    "PasswordChange",
    "PasswordReset",
    "Consent",
    "DeviceCode",
    "Logout",
    "Choose",
    "Refused",
    "Continue",
    "Error"
);

/// The components that views include. A customer's view may include them too.
const COMPONENTS: [(&str, &str); 5] = templates!("Field", "Rules", "Scripts", "Style", "Ways");

/// The names of the views.
pub const fn names() -> &'static [&'static str] {
    NAMES
}

/// The names of the views, and of the components that they include.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    sources().map(|(name, _)| name)
}

/// A view's source.
pub fn content(name: &str) -> Option<&'static str> {
    find(&VIEWS, name)
}

/// The sample contexts of a view, by their names; none for an unknown view.
pub fn samples(name: &str) -> serde_json::Map<String, serde_json::Value> {
    find(&SAMPLES, name).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// All views and components, each with its source.
pub(crate) fn sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    VIEWS.into_iter().chain(COMPONENTS)
}

fn find(templates: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    templates.iter().find(|(own, _)| *own == name).map(|(_, source)| *source)
}

#[cfg(test)]
mod tests {
    use super::{COMPONENTS, VIEWS, content, names, samples};
    use crate::{
        language::Language,
        view::{check, shipped_in, words},
    };

    #[test]
    fn all_pages_are_complete() {
        for name in names() {
            assert!(!samples(name).is_empty(), "{name}");
            assert_eq!(check(content(name).unwrap()), Ok(()), "{name}");
            for (sample, context) in samples(name) {
                for language in Language::ALL {
                    let page = shipped_in(language)
                        .render(name, &context)
                        .unwrap_or_else(|failure| panic!("{name} {sample}: {failure}"))
                        .html;
                    check_page(&page, language);
                    // a form of an application proves nothing to this server
                    let has_own = page.contains("<form method=\"post\" action=\"&#x2f;");
                    assert_eq!(has_own, context.get("csrf").is_some(), "{name} {sample}");
                }
            }
        }
        assert_eq!(content("Field"), None);
    }

    fn check_page(page: &str, language: Language) {
        assert!(page.starts_with("<!DOCTYPE html>\n"), "{page}");
        assert!(page.contains(&format!("<html lang=\"{}\">", language.tag())));
        assert!(!page.contains("{{") && !page.contains("{%"), "{page}");
        // a page runs one script at most: that of passkeys, or that of a form for a client app
        let scripts = page.matches("<script").count();
        let passkey_scripts = page.matches("<script src=\"/signin/passkey.js\" data-passkey=\"").count();
        let posts = page.matches("<script src=\"/signin/post.js\" defer></script>").count();
        assert!(scripts == passkey_scripts + posts && scripts <= 1, "{page}");
        assert_eq!(posts == 1, page.contains("<form method=\"post\" action=\"https:"), "{page}");
        let title = page.split("<title>").nth(1).unwrap().split("</title>").next().unwrap();
        assert!(title.ends_with("Chancery") || title.ends_with("Northwind Traders"), "{title}");
        assert!(page.contains("<style nonce=\"bm9uY2U\">") && page.matches("<h1>").count() == 1);
        for form in page.split("<form ").skip(1) {
            let is_own = form.starts_with("method=\"post\" action=\"&#x2f;");
            assert!(is_own || form.starts_with("method=\"post\" action=\"https:"), "{form}");
            let form = form.split("</form>").next().unwrap();
            assert_eq!(form.contains("name=\"csrf\" value=\"3q2-7w\""), is_own);
        }
        for input in page.split("<input").skip(1).map(|rest| rest.split('>').next().unwrap()) {
            if input.contains("type=\"hidden\"") {
                continue;
            }
            let id = input.split(" id=\"").nth(1).map(|rest| rest.split('"').next().unwrap());
            let labelled = id.is_some_and(|id| page.contains(&format!("<label for=\"{id}\">")));
            assert!(labelled || input.contains("aria-label="), "{input}");
            assert!(input.contains("type=\"checkbox\"") || input.contains(" autocomplete=\""), "{input}");
        }
        // nothing is loaded from another origin; the icon is in the page
        assert!(
            page.matches("<link ").count() == 1 && page.contains("<link rel=\"icon\" href=\"data:image/")
        );
        for forbidden in [" src=\"http", "@import", "url(", "style=\"", " onclick"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn inputs_have_autocomplete_attributes() {
        let has = |name: &str, sample: &str, words: &str| {
            let page = shipped_in(Language::English).render(name, &samples(name)[sample]).unwrap().html;
            assert!(page.contains(words), "{words} in {page}");
        };
        has("SignIn", "first", "autocomplete=\"username webauthn\"");
        has("SignIn", "first", "autocomplete=\"current-password\"");
        has("SignIn", "first", "<svg class=\"icon\"");
        has("SignIn", "first", "fabrikam.svg\" alt=\"\">");
        has("SignIn", "refused", "role=\"alert\"");
        has("SignIn", "refused", "aria-invalid=\"true\" aria-describedby=\"password-about\"");
        has("SignIn", "refused", "<title>Error: Sign in · Chancery</title>");
        has("SignIn", "branded", "--accent: #f2b705; --on-accent: #000");
        has("SignIn", "first", "<script src=\"/signin/passkey.js\" data-passkey=\"get\" data-options=\"{");
        has("Passkey", "offer", "data-passkey=\"create\"");
        has("SecondFactor", "totp", "autocomplete=\"one-time-code\"");
        has("Enrol", "first", "ABCD EFGH");
        has("AccessPass", "first", "autocomplete=\"one-time-code\"");
        has("PasswordChange", "expired", "autocomplete=\"new-password\"");
        has("PasswordReset", "set", "autocomplete=\"username\"");
        has("Questionnaire", "first", "autocomplete=\"tel\" required");
        has("Questionnaire", "refused", "aria-invalid=\"true\"");
        has("Questionnaire", "refused", "value=\"0170 1234567\"");
    }

    /// Each text that a page names exists; by the tests above in both languages.
    #[test]
    fn every_used_text_exists() {
        let texts: toml::Table = toml::from_str(Language::English.source()).unwrap();
        let mut used = 0;
        for (name, source) in VIEWS.into_iter().chain(COMPONENTS) {
            for path in words(source, "text") {
                let part = texts.get(&path.0).and_then(toml::Value::as_table);
                let part = part.unwrap_or_else(|| panic!("{name}: {path:?}"));
                if let Some(key) = &path.1 {
                    assert!(part.contains_key(key), "{name}: {path:?}");
                    used += 1;
                }
            }
        }
        assert!(used > 60);
    }
}
