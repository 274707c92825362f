//! Rendering: a view becomes a page.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    error::Error as _,
    io::{self, Write},
    sync::LazyLock,
};

use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value as Data, value::Serde};
use serde_json::{Map, Value, json};

use super::{Failure, Refusal, filters, rules};
use crate::{language::Language, shipped};

/// The most bytes of a page.
pub const LONGEST_PAGE: usize = 2 << 20;

/// The most steps of rendering a page; the shipped pages take about a thousand.
const FUEL: u64 = 50_000;

/// How deep views may include each other, in MiniJinja's measure: ten for each include.
const DEPTH: usize = 200;

/// The most views of one page.
const MOST_VIEWS: usize = 20;

/// Renders a view to a page. `own` returns the customer's source of a view by its name; where it
/// returns `None`, the shipped source is used. It is called for the view and for those that the view
/// names in quotes after `extends` or `include`.
///
/// The context is an object; null in it is the same as absent. `text` and `language` are added.
///
/// # Errors
/// Which view fails, where and why.
pub fn render(
    name: &str,
    context: &Value,
    language: Language,
    own: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Failure> {
    let sources = collect(name, own)?;
    let mut environment = environment(language);
    let failed = |error: &Error| failure(name, error, &sources);
    for (name, source) in &sources {
        environment.add_template(name, source).map_err(|error| failed(&error))?;
    }
    fill(&environment, name, context).map_err(|error| failed(&error))
}

/// Renders a shipped view, which is parsed once.
///
/// # Errors
/// Which view fails, where and why.
pub fn render_shipped(name: &str, context: &Value, language: Language) -> Result<String, Failure> {
    let environment = match language {
        Language::English => &ENGLISH,
        Language::German => &GERMAN,
    };
    let failed = |error: &Error| failure(name, error, &collect(name, &|_| None).unwrap_or_default());
    fill(environment, name, context).map_err(|error| failed(&error))
}

static ENGLISH: LazyLock<Environment<'static>> = LazyLock::new(|| shipped_in(Language::English));
static GERMAN: LazyLock<Environment<'static>> = LazyLock::new(|| shipped_in(Language::German));

/// The shipped views. One that cannot be parsed is missing: tests render them all.
fn shipped_in(language: Language) -> Environment<'static> {
    let mut environment = environment(language);
    for (name, source) in shipped::sources() {
        let _ = environment.add_template(name, source);
    }
    environment
}

fn environment<'a>(language: Language) -> Environment<'a> {
    let mut environment = Environment::empty();
    environment.set_debug(false);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(DEPTH);
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_global("text", language.texts());
    environment.add_global("language", language.tag());
    filters::add_to(&mut environment);
    environment
}

fn fill(environment: &Environment<'_>, name: &str, context: &Value) -> Result<String, Error> {
    let mut page = Page(Vec::new());
    environment.get_template(name)?.render_captured_to(data(context), &mut page)?;
    String::from_utf8(page.0).map_err(|_| Error::new(ErrorKind::WriteFailure, "the page is no text"))
}

type Sources = BTreeMap<String, Cow<'static, str>>;

/// The sources of a view and of all that it names, directly or through others.
fn collect(name: &str, own: &dyn Fn(&str) -> Option<String>) -> Result<Sources, Failure> {
    let mut sources = Sources::new();
    let mut wanted = vec![name.to_owned()];
    while let Some(name) = wanted.pop() {
        if sources.contains_key(&name) {
            continue;
        }
        let found = own(&name).map(Cow::Owned).or_else(|| shipped::source(&name).map(Cow::Borrowed));
        // a view may be missing on purpose (`ignore missing`); if not, MiniJinja reports it
        let Some(source) = found else { continue };
        let refused = |refusal| Failure { view: name.clone(), refusal };
        if sources.len() == MOST_VIEWS {
            let detail = format!("a page is made of at most {MOST_VIEWS} views");
            return Err(refused(Refusal::at(0, &source, detail)));
        }
        rules::check(&source).map_err(refused)?;
        wanted.extend(rules::names(&source).map_err(refused)?.into_iter().map(str::to_owned));
        sources.insert(name, source);
    }
    Ok(sources)
}

/// The failure by its innermost cause: of an error in an included view, MiniJinja's outermost is the include.
fn failure(name: &str, error: &Error, sources: &Sources) -> Failure {
    let mut innermost = error;
    while let Some(inner) = innermost.source().and_then(|inner| inner.downcast_ref::<Error>()) {
        innermost = inner;
    }
    let view = innermost.name().unwrap_or(name);
    let source = sources.get(view).map_or("", AsRef::as_ref);
    Failure { view: view.to_owned(), refusal: Refusal::of(innermost, source) }
}

/// The context with the members that every page reads.
fn data(context: &Value) -> Data {
    let mut all = Map::new();
    all.insert("brand".to_owned(), json!({}));
    all.insert("errors".to_owned(), json!([]));
    if let Value::Object(given) = without_null(context) {
        all.extend(given);
    }
    if let Some(Value::Object(brand)) = all.get_mut("brand") {
        brand.entry("name").or_insert_with(|| shipped::NAME.into());
    }
    Data::from(Serde(all))
}

fn without_null(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let there = members.iter().filter(|(_, value)| !value.is_null());
            there.map(|(name, value)| (name.clone(), without_null(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_null).collect(),
        other => other.clone(),
    }
}

struct Page(Vec<u8>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST_PAGE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
