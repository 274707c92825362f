//! Rendering: a view becomes a page.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    error::Error as _,
    io::{self, Write},
    sync::LazyLock,
};

use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value as Data, value::Serde};
use serde_json::{Map, Value, json};

use super::{
    Failure, Refusal, filters,
    html::{Own, Reduced, addresses_in, reduce},
    rules,
};
use crate::{language::Language, shipped};

/// The most bytes of a page.
pub const LONGEST_PAGE: usize = 2 << 20;

/// The most steps of rendering a page; the shipped pages take about a thousand.
const FUEL: u64 = 50_000;

/// How deep views may include each other, in MiniJinja's measure: ten for each include.
const DEPTH: usize = 200;

/// The shipped views and, before them, those of a customer: parsed once, for one language.
#[derive(Clone)]
pub struct Views {
    language: Language,
    environment: Environment<'static>,
    sources: BTreeMap<String, Cow<'static, str>>,
    /// The addresses of other sites in a customer's views; none where all views are shipped.
    addresses: Option<BTreeSet<String>>,
}

impl Views {
    /// The shipped views, with the given ones replacing those of the same names. One that may not be stored is
    /// left out, and returned besides.
    pub fn new(language: Language, own: impl IntoIterator<Item = (String, String)>) -> (Self, Vec<Failure>) {
        // shipped views are parsed once for all
        let mut views = shipped_in(language).clone();
        let (mut addresses, mut failures) = (BTreeSet::new(), Vec::new());
        for (name, source) in own {
            addresses.extend(addresses_in(&source));
            failures.extend(views.add(name, source.into()).err());
        }
        views.addresses = Some(addresses);
        (views, failures)
    }

    fn of_shipped(language: Language) -> Self {
        let environment = environment(language);
        let mut views = Self { language, environment, sources: BTreeMap::new(), addresses: None };
        for (name, source) in shipped::sources() {
            // one that cannot be parsed is missing: tests render them all
            let _ = views.add(name.to_owned(), source.into());
        }
        views
    }

    fn add(&mut self, name: String, source: Cow<'static, str>) -> Result<(), Failure> {
        let refused = |refusal| Failure { view: name.clone(), refusal };
        rules::check(&source).map_err(refused)?;
        let parsed = self.environment.add_template_owned(name.clone(), source.clone());
        parsed.map_err(|error| refused(Refusal::of(&error, &source)))?;
        self.sources.insert(name, source);
        Ok(())
    }

    /// Renders a view to a page. The context is an object; null in it is the same as absent. `text` and `language` are
    /// added. Where a customer has views, the page is reduced to the allowed content.
    ///
    /// # Errors
    /// The view that fails, with the position and the reason.
    pub fn render(&self, name: &str, context: &Value) -> Result<Reduced, Failure> {
        let html = self.filled(name, context)?;
        let Some(addresses) = &self.addresses else { return Ok(Reduced { html, removed: BTreeSet::new() }) };
        let scripts = shipped_in(self.language).filled("Scripts", context)?;
        let own = Own { context, addresses, scripts: scripts.trim_end() };
        let reduced = reduce(&html, &own);
        reduced.ok_or_else(|| {
            let detail = "the page is nested too deeply, or has too many elements or attributes";
            Failure { view: name.to_owned(), refusal: Refusal::at(0, "", detail) }
        })
    }

    /// A page as its views render it.
    pub(super) fn filled(&self, name: &str, context: &Value) -> Result<String, Failure> {
        self.fill(name, context).map_err(|error| self.failure(name, &error))
    }

    fn fill(&self, name: &str, context: &Value) -> Result<String, Error> {
        let mut page = Page(Vec::new());
        self.environment.get_template(name)?.render_captured_to(data(context), &mut page)?;
        String::from_utf8(page.0).map_err(|_| Error::new(ErrorKind::WriteFailure, "the page is no text"))
    }

    /// The failure by its innermost cause: of an error in an included view, MiniJinja's outermost is the include.
    fn failure(&self, name: &str, error: &Error) -> Failure {
        let mut innermost = error;
        while let Some(inner) = innermost.source().and_then(|inner| inner.downcast_ref::<Error>()) {
            innermost = inner;
        }
        let view = innermost.name().unwrap_or(name);
        let source = self.sources.get(view).map_or("", AsRef::as_ref);
        Failure { view: view.to_owned(), refusal: Refusal::of(innermost, source) }
    }
}

/// The shipped views, parsed once.
pub fn shipped_in(language: Language) -> &'static Views {
    match language {
        Language::English => &ENGLISH,
        Language::German => &GERMAN,
    }
}

static ENGLISH: LazyLock<Views> = LazyLock::new(|| Views::of_shipped(Language::English));
static GERMAN: LazyLock<Views> = LazyLock::new(|| Views::of_shipped(Language::German));

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
