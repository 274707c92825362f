//! Names and types of events. One that `spec/events.tsv` lacks does not compile.

const CATALOGUE: &[u8] = include_bytes!("../../../../spec/events.tsv");

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
        assert!(is_in_catalogue(&[".", name, "\t"]), "spec/events.tsv has no event of this name");
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
        assert!(is_in_catalogue(&["\n", name, "\t"]), "spec/events.tsv has no event of this type");
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

/// Whether these texts stand in the catalogue, one after another.
const fn is_in_catalogue(texts: &[&str]) -> bool {
    let mut rest = CATALOGUE;
    while let [_, more @ ..] = rest {
        if begins_with(rest, texts) {
            return true;
        }
        rest = more;
    }
    false
}

const fn begins_with(mut rest: &[u8], mut texts: &[&str]) -> bool {
    while let [text, later @ ..] = texts {
        let mut text = text.as_bytes();
        while let [expected, end @ ..] = text {
            rest = match rest {
                [byte, more @ ..] if *byte == *expected => more,
                _ => return false,
            };
            text = end;
        }
        texts = later;
    }
    true
}
