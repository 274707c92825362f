//! Tests of the reduction of customers' views, by parsing the result.

use std::collections::BTreeSet;

use html5ever::ns;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Own, Reduced, addresses_in, reduce,
    tree::{Content, Tree, parse},
};
use crate::{
    language::Language,
    shipped,
    view::{Views, check, check_page},
};

const SCRIPTS: &str = "<script src=\"/signin/passkey.js\" data-options=\"{}\" defer></script>";

fn context() -> Value {
    json!({
        "action": "/signin/password?flow=1&ui_locales=en", "csrf": "c", "passkey": "{}",
        "brand": { "logo": "https://cdn.example/logo.png" },
        "links": [{ "name": "Imprint", "url": "https://tenant.example/imprint" }],
        "frames": ["https://app.example/out"], "application": { "name": "https://name.example/" },
    })
}

fn reduced(page: &str) -> Reduced {
    let addresses: BTreeSet<String> = addresses_in(page).collect();
    reduce(page, &Own { context: &context(), addresses: &addresses, scripts: SCRIPTS }).unwrap()
}

/// The page without the elements of every page.
fn body(page: &str) -> String {
    let html = reduced(page).html;
    html.split_once("<body>").unwrap().1.strip_suffix("</body></html>").unwrap().to_owned()
}

/// Forbidden content of a page, found by independent rules: elements that run or redirect by themselves, foreign
/// forms, password inputs outside of them, and attributes that run.
fn forbidden(page: &str) -> Vec<String> {
    fn walk(tree: &Tree, at: usize, is_in_form: bool, violations: &mut Vec<String>) {
        for child in tree.children(at) {
            let Content::Element(name, attributes) = tree.content(child) else { continue };
            let value = |attribute: &str| {
                let of = attributes.iter().find(|one| &*one.name.local == attribute);
                of.map(|one| one.value.to_string())
            };
            let element = &*name.local;
            let is_own_script = value("src").as_deref() == Some("/signin/passkey.js");
            let is_bad = match element {
                "script" => !is_own_script,
                "form" => {
                    value("method").as_deref() != Some("post")
                        || value("action") != context()["action"].as_str().map(str::to_owned)
                }
                "input" => {
                    !is_in_form
                        || !matches!(value("type").as_deref(), None | Some("password" | "hidden" | "text"))
                }
                "button" | "select" => !is_in_form,
                "meta" => {
                    value("http-equiv").is_some()
                        || value("content").is_some_and(|content| content.contains("unsafe"))
                }
                "iframe" => value("src").as_deref() != Some("https://app.example/out"),
                "link" => value("href").is_some_and(|href| !href.starts_with('/')),
                "img" => value("src").is_some_and(|src| !src.starts_with(['/', 'd'])),
                "base" | "object" | "embed" | "template" | "noscript" | "math" | "foreignObject"
                | "textarea" | "plaintext" | "xmp" | "animate" | "use" | "frameset" => true,
                "style" => name.ns != ns!(html),
                _ => false,
            };
            let of = |one: &html5ever::Attribute| {
                let (name, value) = (&*one.name.local, one.value.to_ascii_lowercase());
                let leads_away = value.contains("javascript:") || value.contains("evil.example");
                let is_named = name == "name" && element != "input";
                name.starts_with("on")
                    || leads_away
                    || is_named
                    || matches!(
                        name,
                        "style" | "ping" | "srcdoc" | "formaction" | "srcset" | "form" | "target-x"
                    )
                    || name == "data-options" && element != "script"
            };
            if is_bad || attributes.iter().any(of) {
                violations.push(format!(
                    "{element} {:?}",
                    attributes
                        .iter()
                        .map(|one| format!("{}={}", one.name.local, one.value))
                        .collect::<Vec<_>>()
                ));
            }
            walk(tree, child, is_in_form || element == "form", violations);
        }
    }
    let mut violations = Vec::new();
    walk(&parse(page).unwrap(), 0, false, &mut violations);
    violations
}

const FORM: &str = "<form method=post action=\"/signin/password?flow=1&amp;ui_locales=en\">";

#[test]
fn shipped_pages_lose_nothing() {
    for name in shipped::names() {
        let content = shipped::content(name).unwrap();
        assert_eq!(check_page(name, content), Ok(()), "{name}");
        let (own, _) = Views::new(
            Language::German,
            [("Layout".to_owned(), shipped::content("Layout").unwrap().to_owned())],
        );
        for (sample, context) in shipped::samples(name) {
            let page = own.render(name, &context).unwrap();
            assert_eq!(page.removed, BTreeSet::new(), "{name} {sample}");
            // nothing that people see or fill in is removed, and the page's script comes back
            let written = own.filled(name, &context).unwrap();
            for part in [
                "<form",
                "<input",
                "<button",
                "<a ",
                "<svg",
                "<path",
                "<label",
                "<p",
                "<script",
                "<style nonce=\"bm9uY2U\">",
                "<meta",
                "<iframe",
            ] {
                assert_eq!(
                    page.html.matches(part).count(),
                    written.matches(part).count(),
                    "{name} {sample} {part}"
                );
            }
        }
    }
}

#[test]
fn content_that_leads_to_other_sites_is_removed() {
    for (page, left, removed) in [
        ("<meta http-equiv=refresh content='0;url=https://evil.example'>x", "x", "<meta>"),
        ("<base href='https://evil.example/'>x", "x", "<base>"),
        ("<p>x<script>alert(1)</script><script src=/content/x.js></script>", "<p>x</p>", "<script>"),
        (
            "<form method=get action=/device><input type=password name=user_code><b>x</b></form>",
            "<b>x</b>",
            "<form>",
        ),
        ("<form method=post action=/console/ClientAppRole/new><input name=a></form>", "", "<form>"),
        ("<form method=post><input name=a></form>", "", "<form>"),
        ("<input type=password>", "", "<input>"),
        ("<button formaction=/x>x</button>", "x", "<button>"),
        ("<iframe src=https://evil.example></iframe><iframe srcdoc='<p>'></iframe>", "", "<iframe>"),
        ("<p onclick=x style='color:red'>x", "<p>x</p>", "p onclick"),
        ("<a href=' javascript:alert(1)'>x</a>", "<a>x</a>", "a href"),
        ("<a href='//evil.example'>x</a><a href='/\t/evil.example'>y</a>", "<a>x</a><a>y</a>", "a href"),
        ("<a href=/x ping=https://evil.example>x</a>", "<a href=\"/x\">x</a>", "a ping"),
        ("<img src=https://evil.example/x>", "<img>", "img src"),
        ("<img name=currentScript src=/x>", "<img src=\"/x\">", "img name"),
        ("<link rel=dns-prefetch href=//secret.evil.example>x", "x", "<link>"),
        (
            "<svg><foreignObject><p>x</p></foreignObject><style>a</style><a href=x>y</a></svg>",
            "<svg></svg>",
            "<foreignObject>",
        ),
        (
            "<svg><path d='M1 1' fill='url(https://evil.example)'/></svg>",
            "<svg><path d=\"M1 1\"></path></svg>",
            "path fill",
        ),
        ("<math><mtext><p>x</p></mtext></math>", "", "<math>"),
        (
            "<noscript><p>x</p></noscript><template><p>x</p></template><textarea>x</textarea>",
            "",
            "<noscript>",
        ),
        ("<blink>x</blink>", "x", "<blink>"),
    ] {
        let whole = reduced(page);
        assert_eq!(body(page), left, "{page}");
        assert!(whole.removed.contains(removed), "{page}: {:?}", whole.removed);
        assert_eq!(forbidden(&whole.html), [""; 0], "{page}");
    }
    // a form's own attributes cannot send it elsewhere
    let page = format!(
        "{FORM}<input type=image formaction=/x src=/y name=a form=b><button formmethod=get>x</button></form>"
    );
    assert!(body(&page).ends_with("<input name=\"a\"><button>x</button></form>"), "{}", body(&page));
}

#[test]
fn allowed_content_is_retained() {
    for page in [
        "<p class=\"a\" id=\"b\" aria-label=\"c\" data-x=\"d\">x &amp; &lt;y&gt;</p>",
        "<form method=\"post\" action=\"/signin/password?flow=1&amp;ui_locales=en\" data-passkey=\"\" hidden=\"\"><input type=\"password\" name=\"password\"></form>",
        "<a href=\"https://tenant.example/imprint\">x</a><a href=\"#b\">x</a><a href=\"?a=b\">x</a><a href=\"mailto:a@b.example\">x</a>",
        "<img src=\"https://cdn.example/logo.png\" alt=\"\"><img src=\"/content/assets/global/x.png\" alt=\"\"><img src=\"data:image/png;base64,AA\" alt=\"\">",
        "<iframe src=\"https://app.example/out\" hidden=\"\"></iframe>",
        "<svg viewBox=\"0 0 8 8\" xmlns=\"http://www.w3.org/2000/svg\"><linearGradient id=\"a\"><stop offset=\"1\"></stop></linearGradient><rect fill=\"url(#a)\"></rect></svg>",
        "<p>x</p><style>a > b { color: red }</style>",
        "<table><tbody><tr><td>x</td></tr></tbody></table>",
        "<a href=\"https://literal.example/?a=b&amp;c=d\">x</a>",
    ] {
        let whole = reduced(page);
        assert_eq!((body(page).as_str(), whole.removed), (page, BTreeSet::new()));
    }
    let head = "<meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>a &amp; b</title>\
        <link rel=\"stylesheet\" href=\"/content/assets/global/x.css\"><link rel=\"icon\" href=\"/content/x.png\">";
    let html = reduced(head).html;
    assert_eq!(html, format!("<!DOCTYPE html>\n<html><head>{head}{SCRIPTS}</head><body></body></html>"));
}

/// An address that is composed could leak the context.
#[test]
fn addresses_of_other_sites_are_literals_of_the_view() {
    let link = |view: &str| {
        let (views, _) = Views::new(Language::English, [("Own".to_owned(), view.to_owned())]);
        views.render("Own", &json!({ "secret": "s", "link": { "url": "https://own.example/x" } })).unwrap()
    };
    for good in
        ["https://a.example/x?y=1&z", "https://a.example/x?y=1&amp;z", "{{ link.url }}", "/x/{{ secret }}"]
    {
        assert_eq!(link(&format!("<a href=\"{good}\">x</a>")).removed, BTreeSet::new(), "{good}");
    }
    for bad in [
        "https://a.example/{{ secret }}",
        "https://{{ secret }}.a.example/",
        "{{ 'https://a.example/' }}{{ secret }}",
    ] {
        let page = link(&format!("<a href=\"{bad}\">x</a>"));
        assert_eq!(page.removed, BTreeSet::from(["a href".to_owned()]), "{bad}");
        assert!(!page.html.contains("a.example"), "{bad}");
    }
}

#[test]
fn a_page_beyond_the_bounds_is_refused() {
    let own = Own { context: &context(), addresses: &BTreeSet::new(), scripts: "" };
    let many = |part: &str, count: usize| part.repeat(count);
    let counted =
        |count: u32, part: &dyn Fn(u32) -> String| (0..count).map(part).collect::<Vec<_>>().concat();
    let attributes = counted(100_000, &|at| format!(" a{at}"));
    for page in [
        many("<div>", 100_000),
        many("<b id=x>", 1_000) + &many("<p>x", 100_000),
        many("<template>", 50_000),
        many("<svg><g>", 10_000),
        many("<br>", 100_000),
        format!("<p{attributes}>"),
        counted(1_000, &|at| format!("<p><b id={at}></p>")) + &many("<p>x", 10_000),
    ] {
        assert!(reduce(&page, &own).is_none(), "{}", &page[..40]);
    }
    for page in [
        many("<p>some text</p>", 20_000),
        format!("<img src=\"data:image/png;base64,{}\">", many(&format!("/{}", many("A", 63)), 7_000)),
    ] {
        assert!(reduce(&page, &own).is_some(), "{}", &page[..40]);
    }
}

#[test]
fn an_upload_is_refused_with_the_content_that_would_be_removed() {
    let refusal = check_page("SignIn", "<p>\n <META http-equiv=refresh content=1>").unwrap_err();
    assert_eq!((refusal.line, refusal.column), (2, 2), "{refusal}");
    assert!(refusal.detail.contains("<meta>"), "{refusal}");
    let refusal = check_page("Part", "<p>\n<a\n href='x:y' onclick=1>").unwrap_err();
    assert_eq!((refusal.line, refusal.detail.contains("a href")), (3, true), "{refusal}");
    // obsolete content of a view of an earlier release is removed silently: the page has its own
    let earlier = "<script src=\"/signin/passkey.js\" defer></script><form method=\"post\" action=\"{{ action | url }}\" \
        data-passkey=\"get\" data-options=\"{{ passkey }}\" hidden></form>";
    assert_eq!(check_page("SignIn", earlier), check("x"));
    assert!(check_page("SignIn", &earlier.replace("{{ passkey }}", "{}")).is_err());
}

/// Fragments of pages that parsers may read differently from their appearance.
const FRAGMENTS: [&str; 74] = [
    "<form method=get action=/device>",
    "<form>",
    "</form>",
    FORM,
    "<form method=post action=/x>",
    "<input type=password name=a>",
    "<input formaction=/x form=f id=f type=image src=/x>",
    "<button formaction=//evil.example>",
    "<input type=hidden name=b value='</form><p>'>",
    "<script>",
    "</script>",
    "<script src=//evil.example></script>",
    "<!--",
    "-->",
    "--!>",
    "<![CDATA[",
    "]]>",
    "<style>",
    "</style>",
    "<style><!--</style>",
    "<svg>",
    "</svg>",
    "<svg><style>",
    "<svg><title>",
    "<svg><desc>",
    "<foreignObject>",
    "</foreignObject>",
    "<math>",
    "<mtext>",
    "<mglyph>",
    "<annotation-xml encoding='text/html'>",
    "</math>",
    "<table>",
    "<tr>",
    "<td>",
    "</td>",
    "</table>",
    "<caption>",
    "<select>",
    "<option>",
    "</select>",
    "<template>",
    "</template>",
    "<noscript>",
    "</noscript>",
    "<textarea>",
    "</textarea>",
    "<title>",
    "</title>",
    "<plaintext>",
    "<xmp>",
    "</xmp>",
    "<noembed>",
    "<iframe srcdoc='<script>'>",
    "</iframe>",
    "<meta http-equiv=refresh content=0>",
    "<meta name=referrer content=unsafe-url>",
    "<base href=//evil.example>",
    "<object data=//evil.example>",
    "<a href=javascript:x>",
    "<a href='java&#10;script:x' id=a name=b>",
    "<b id=x>",
    "</b>",
    "<p>",
    "</p>",
    "<div data-options=x onclick=x style=x>",
    "</div>",
    "<img src=x onerror=x name=currentScript>",
    "<head>",
    "</head>",
    "<body onload=x>",
    "<frameset>",
    "text &lt;script&gt; \"'`",
    "\0<\u{c}/\n",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Whatever a view writes, browsers find no forbidden content in the page, and a second reduction removes nothing.
    #[test]
    fn a_view_never_shows_forbidden_content(fragments in proptest::collection::vec(proptest::sample::select(&FRAGMENTS[..]), 0..24)) {
        let written = fragments.concat();
        let source = format!("{{% if true %}}{written}{{% endif %}}{{{{ odd }}}}");
        prop_assert!(check(&source).is_ok(), "{}", source);
        let (views, failures) = Views::new(Language::English, [("SignIn".to_owned(), source)]);
        prop_assert!(failures.is_empty());
        let mut context = context();
        context["odd"] = written.clone().into();
        let page = views.render("SignIn", &context).unwrap();
        prop_assert_eq!(forbidden(&page.html), Vec::<String>::new(), "{}", page.html);
        let again = reduced(&page.html);
        prop_assert_eq!(again.removed, BTreeSet::new(), "{}", page.html);
    }
}
