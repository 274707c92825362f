//! Tests of views that customers provide.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Failure, LONGEST, LONGEST_PAGE, Refusal, Views, check, shipped_in};
use crate::{language::Language, shipped};

/// The views with one of a customer's.
fn with_own(name: &str, source: &str, language: Language) -> Result<Views, Failure> {
    let (views, failures) = Views::new(language, [(name.to_owned(), source.to_owned())]);
    failures.into_iter().next().map_or(Ok(views), Err)
}

/// The output of a view, before it is reduced.
fn page(source: &str, context: &Value) -> Result<String, Failure> {
    with_own("Own", source, Language::English)?.filled("Own", context)
}

fn refusal(source: &str) -> Refusal {
    check(source).unwrap_err()
}

#[test]
fn a_broken_view_is_refused_with_line_and_column() {
    for (source, line, column) in [
        ("a\nä {% if x %}", 2, 11),
        ("a\n  {% endfor %}", 2, 6),
        ("{{ a b }}", 1, 6),
        ("\n\n{{ 'a }}", 3, 4),
        ("{# never", 1, 1),
        ("x {{ a", 1, 3),
        ("ä{% macro m() %}{% endmacro %}", 1, 2),
        ("{{ a | nothing }}", 1, 6),
        ("{{ ä }}", 1, 4),
        ("{{ a is odd }}", 1, 6),
        ("{{ ) }}", 1, 1),
        ("{% block a %}{% endblock %}\n{% block a %}{% endblock %}", 2, 10),
    ] {
        let refusal = refusal(source);
        assert_eq!((refusal.line, refusal.column), (line, column), "{source}: {refusal}");
    }
    assert_eq!(refusal(&"a".repeat(LONGEST + 1)).line, 1);
    assert_eq!(check(&"a\n".repeat(LONGEST / 2)), Ok(()));
}

/// MiniJinja counts at most 65,535 lines.
#[test]
fn lines_are_counted_to_the_end() {
    let source = format!("{}{{% if %}}", "\n".repeat(70_000));
    assert_eq!(refusal(&source).line, 70_001);
}

#[test]
fn allowed_tags_are_accepted() {
    for source in [
        "",
        "Hello {{ name }}",
        "{{ 1 + 1 }} {{ loop.index0 + 1 }} {{ 'a' if b else 'c' }} {{ a[0] }} {{ (a or b) and not (c) }}",
        "{% for a, b in c if a == 'x' %}{{ a }}{% else %}{% endfor %}{% if a in ['x', \"y\"] %}{% endif %}",
        "{% set a = b | default('x') %}{% with a = 1, b = range(2, 4) %}{% endwith %}",
        "{% extends 'Layout' %}{% block main %}{{ super() }}{% include \"x\" ignore missing %}{% endblock %}",
        "{#- {% macro %} -#} body { margin: 0 } {- a -} { { } }",
        "{%- if a is not defined -%}{%+ elif b is none +%}{% endif %}",
        "{{ '}}' }}{{ \"{% macro %}\" }}",
    ] {
        assert_eq!(check(source), Ok(()), "{source}");
    }
}

/// Each of these could exceed any memory, or bypasses a bound in another way.
#[test]
fn unbounded_tags_are_refused() {
    for source in [
        "{{ a ~ a }}",
        "{% set a = a ~ a %}",
        "{{ 'a' * 1000000 }}",
        "{{ a + a }}",
        "{{ a + b.1 }}",
        "{% if a + 'x' %}{% endif %}",
        "{% set a = [a, a] %}",
        "{% set a = a, a %}",
        "{% set a = (a, a) %}",
        "{% set a = {'a': a} %}",
        "{% with a = [a, a] %}{% endwith %}",
        "{% for a in [a, a] %}{% endfor %}",
        "{% for a in(a, a) %}{% endfor %}",
        "{% for a in a recursive %}{% endfor %}",
        "{% set a %}b{% endset %}",
        "{% filter upper %}a{% endfilter %}",
        "{% autoescape false %}{% endautoescape %}",
        "{% raw %}{{ a ~ a }}{% endraw %}",
        "{% import 'a' as b %}",
        "{% call a() %}{% endcall %}",
        "{% do a() %}",
        "{{ self.main() }}",
        "{{ super() | upper }}",
        "{% if super() %}{% endif %}",
        "{{ super()() }}",
        "{{ a.range(1) }}",
        "{{ a['x'](1) }}",
        "{{ debug() }}",
        "{{ a | safe }}",
        "{{ a | join }}",
    ] {
        assert!(check(source).is_err(), "{source}");
        assert!(page(source, &json!({ "a": "x", "b": "y" })).is_err(), "{source}");
    }
}

/// Runs on the default stack of a thread.
#[test]
fn deep_views_overflow_no_stack() {
    let run = || {
        let deep = 400_000;
        for (begin, part, middle, end) in [
            ("{{ ", "not ", "a", " }}"),
            ("{{ ", "-", "a", " }}"),
            ("{{ a", ".a", "", " }}"),
            ("{{ a", " - a", "", " }}"),
            ("{{ a", "|e", "", " }}"),
            ("{{ ", "(", "", ""),
            ("{{ ", "[", "", ""),
            ("{{ a", " if a else a", "", " }}"),
            ("{% if a %}", "{% elif a %}", "", "{% endif %}"),
            ("", "{% if a %}", "", ""),
            ("", "{% for a in b %}", "", ""),
            ("{% set ", "(", "a", " = 1 %}"),
        ] {
            let most = (LONGEST - 100) / part.len();
            for count in [deep.min(most), 900 / part.len(), 480 / part.len(), 140, 90] {
                let source = format!("{begin}{}{middle}{end}", part.repeat(count));
                let _ = check(&source);
                let _ = page(&source, &json!({ "a": 1, "b": [1] }));
            }
        }
        // all at once: nested statements, and a long expression in the innermost
        for part in ["not ", "-", "a|e|", "a.", "a<", "("] {
            let expression = format!("{}a", part.repeat(900 / part.len()));
            let source =
                format!("{}{{{{ {expression} }}}}{}", "{% if a %}".repeat(140), "{% endif %}".repeat(140));
            let _ = check(&source);
            let _ = page(&source, &json!({ "a": 1 }));
        }
        assert!(page("{% include 'Own' %}", &json!({})).is_err());
        assert!(page("{% extends 'Own' %}", &json!({})).is_err());
        assert!(page("{% block a %}{% include 'Own' %}{% endblock %}", &json!({})).is_err());
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn endless_views_run_out_of_fuel() {
    let failure =
        page("x\n{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}", &json!({}))
            .unwrap_err();
    assert_eq!(failure.view, "Own");
    assert_eq!((failure.refusal.line, failure.refusal.detail.as_str()), (2, "the view takes too many steps"));
    assert!(page("{% for a in range(100000000) %}{% endfor %}", &json!({})).is_err());
}

#[test]
fn long_pages_end() {
    let source = format!("{{% for a in range(9000) %}}{}{{% endfor %}}", "x".repeat(1000));
    let failure = page(&source, &json!({})).unwrap_err();
    assert_eq!(failure.refusal.detail, "the page becomes too long", "{LONGEST_PAGE}");
}

#[test]
fn values_of_the_context_are_escaped() {
    let hostile_text = "<script>alert('x')</script>\"";
    let context = json!({ "a": hostile_text, "m": { "k": hostile_text } });
    for source in [
        "{{ a }}",
        "{{ a | e }}",
        "{{ a | upper }}",
        "{{ a | trim | default }}",
        "{{ m.k }}",
        "{{ m['k'] }}",
        "{{ '{x}' | fill(x=a) }}",
        "{{ b | default(a) }}",
        "{% set b = a %}{{ b }}",
        "<a title=\"{{ a }}\">",
        "{% for k in m %}{{ m[k] }}{% endfor %}",
        "{{ '<script>' }}",
    ] {
        let page = page(source, &context).unwrap().to_lowercase();
        assert!(!page.contains("<script") && !page.contains('\''), "{source}: {page}");
        assert!(page.contains("&lt;script"), "{page}");
    }
    assert!(page("{{ m }}", &context).is_err());
    for name in shipped::names() {
        let context = hostile(name, hostile_text);
        if let Ok(page) = shipped_in(Language::German).filled(name, &context) {
            let others = page.replace("<script src=\"/signin/", "");
            assert!(!others.contains("<script") && !page.contains("javascript:"), "{name}: {page}");
        }
    }
}

/// Replaces every text of a sample by a hostile one.
fn hostile(name: &str, hostile_text: &str) -> Value {
    fn replace(value: &mut Value, hostile_text: &str) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    let is_exempt = ["step", "method", "reason", "code", "colour"].contains(&key.as_str());
                    if key.contains("url") || key == "action" || key == "logo" {
                        *value = "javascript:alert(1)".into();
                    } else if !is_exempt {
                        replace(value, hostile_text);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| replace(item, hostile_text)),
            Value::String(text) => hostile_text.clone_into(text),
            _ => {}
        }
    }
    let mut context = shipped::samples(name).into_iter().next().unwrap().1;
    replace(&mut context, hostile_text);
    context
}

#[test]
fn a_colour_cannot_leave_its_style() {
    let mut context = shipped::samples("SignIn")["branded"].clone();
    context["brand"]["colour"] = "red;}</style><script>".into();
    assert!(shipped_in(Language::English).render("SignIn", &context).is_err());
}

#[test]
fn a_customers_layout_replaces_the_shipped_one() {
    let own = "<html lang={{ language }}>{% block main %}{% endblock %}";
    let views = with_own("Layout", own, Language::German).unwrap();
    let context = &shipped::samples("SignIn")["first"];
    let page = views.filled("SignIn", context).unwrap();
    assert!(page.starts_with("<html lang=de>") && page.contains("name=\"password\""));
    let broken = with_own("Layout", "\n{{ nothing.there }}", Language::German).unwrap();
    let failure = broken.render("SignIn", context).unwrap_err();
    assert_eq!((failure.view.as_str(), failure.refusal.line), ("Layout", 2), "{failure}");
    assert!(views.render("Nowhere", context).is_err());
}

#[test]
fn views_that_include_each_other_without_end_are_refused() {
    let views = with_own("a", "{% include 'a' %}", Language::English).unwrap();
    assert!(views.render("a", &json!({})).is_err());
}

#[test]
fn a_view_that_may_not_be_stored_leaves_the_shipped_one() {
    let (views, failures) =
        Views::new(Language::English, [("SignIn".to_owned(), "{% macro m() %}".to_owned())]);
    assert_eq!(failures.iter().map(|failure| failure.view.as_str()).collect::<Vec<_>>(), ["SignIn"]);
    let context = &shipped::samples("SignIn")["first"];
    assert!(views.render("SignIn", context).unwrap().html.contains("name=\"password\""));
}

#[test]
fn null_is_the_same_as_absent() {
    let source =
        "{% if a is defined %}there{% endif %}{{ b.c | default('x') }}{% for d in e %}{{ d }}{% endfor %}";
    let written = page(source, &json!({ "a": null, "b": { "c": null }, "e": [1, true, 2.5] })).unwrap();
    assert_eq!(written, "x1True2.5");
    assert!(page("{{ a }}", &json!({ "a": null })).is_err());
}

proptest! {
    #[test]
    fn checking_never_panics(source in "(\\{\\{|\\}\\}|\\{%|%\\}|\\{#|#\\}| |if|elif|else|endif|for|in|endfor|set|with|block|a|=|\\(|\\)|\\[|\\]|\\||'|\"|\\\\|1|\\.|\\PC|\n){0,30}") {
        if let Err(refusal) = check(&source) {
            prop_assert!(refusal.line >= 1 && refusal.column >= 1);
            prop_assert!(refusal.line <= source.matches('\n').count() + 1);
        } else {
            let _ = page(&source, &json!({ "a": "x" }));
        }
    }
}
