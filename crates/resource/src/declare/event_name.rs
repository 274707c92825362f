//! Names and types of events. One that `spec/events.tsv` lacks does not compile.

use chancery_record::{ends_with, is_same_text};

const CATALOGUE: &str = include_str!("../../../../spec/events.tsv");
/// The number of types: a line for each, below a heading.
const COUNT: usize = lines() - 1;
/// The types of the catalogue. A static is evaluated once, where a constant is evaluated by each crate that uses it.
static TYPES: [&str; COUNT] = types();

/// The last part of the type of a change's event, such as `password-reset` of `platform.userstore.user.password-reset`. The
/// rest follows from the resource. [`event_name!`](crate::event_name) constructs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventName(&'static str);

impl EventName {
    /// Evaluated at compile time.
    ///
    /// # Panics
    /// When no type of the catalogue ends with the name; that is a compile error.
    pub const fn declared(name: &'static str) -> Self {
        assert!(has_name(name), "spec/events.tsv has no event of this name");
        Self(name)
    }

    /// The text of the name.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// The type of an event, such as `platform.signin.session.created`. [`event_type!`](crate::event_type) constructs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventType(&'static str);

impl EventType {
    /// Evaluated at compile time.
    ///
    /// # Panics
    /// When the catalogue lacks the type; that is a compile error.
    pub const fn declared(name: &'static str) -> Self {
        assert!(has_type(name), "spec/events.tsv has no event of this type");
        Self(name)
    }

    /// The text of the type.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// Whether it is about sign-in activity of people: sessions, grants, attempts.
    pub fn is_of_sign_ins(self) -> bool {
        self.0.starts_with("platform.signin.")
    }
}

/// The name of an event, as an [`EventName`]. One that `spec/events.tsv` lacks does not compile:
///
/// ```
/// assert_eq!(chancery_resource::event_name!("password-reset").as_str(), "password-reset");
/// ```
///
/// ```compile_fail
/// chancery_resource::event_name!("password-rest");
/// ```
#[macro_export]
macro_rules! event_name {
    ($name:literal) => {{
        // a const item, so that it is evaluated at compile time in any context
        const NAME: $crate::EventName = $crate::EventName::declared($name);
        NAME
    }};
}

/// The type of an event, as an [`EventType`]. One that `spec/events.tsv` lacks does not compile:
///
/// ```
/// let created = chancery_resource::event_type!("platform.signin.session.created");
/// assert_eq!(created.as_str(), "platform.signin.session.created");
/// ```
///
/// ```compile_fail
/// chancery_resource::event_type!("platform.signin.session.make");
/// ```
#[macro_export]
macro_rules! event_type {
    ($name:literal) => {{
        const TYPE: $crate::EventType = $crate::EventType::declared($name);
        TYPE
    }};
}

/// Whether the catalogue has this type.
const fn has_type(name: &str) -> bool {
    let mut rest: &[&str] = &TYPES;
    while let [known, more @ ..] = rest {
        if is_same_text(known, name) {
            return true;
        }
        rest = more;
    }
    false
}

/// Whether the last part of a type, after a full stop, is this name.
const fn has_name(name: &str) -> bool {
    let mut rest: &[&str] = &TYPES;
    while let [known, more @ ..] = rest {
        if ends_with(known, name) && ends_with(known.split_at(known.len() - name.len()).0, ".") {
            return true;
        }
        rest = more;
    }
    false
}

const fn lines() -> usize {
    let (mut count, mut rest) = (0, CATALOGUE.as_bytes());
    while let [byte, more @ ..] = rest {
        count += (*byte == b'\n') as usize;
        rest = more;
    }
    count
}

/// The first cell of each line below the heading.
#[expect(clippy::indexing_slicing, reason = "in a constant: out of bounds does not compile")]
const fn types() -> [&'static str; COUNT] {
    let (mut types, mut count) = ([""; COUNT], 0);
    let mut start = index_of(b'\n', 0) + 1;
    while count < COUNT {
        let at = index_of(b'\t', start);
        types[count] = CATALOGUE.split_at(at).0.split_at(start).1;
        count += 1;
        start = index_of(b'\n', at) + 1;
    }
    types
}

/// Where a byte is in the catalogue, at the earliest at this place.
#[expect(clippy::indexing_slicing, reason = "in a constant: out of bounds does not compile")]
const fn index_of(byte: u8, from: usize) -> usize {
    let mut at = from;
    while CATALOGUE.as_bytes()[at] != byte {
        at += 1;
    }
    at
}
