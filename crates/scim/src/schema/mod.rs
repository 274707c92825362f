//! The attributes of users and groups, and where each is kept at either home.

mod group;
mod user;

pub use group::GROUP;
use serde_json::{Map, Value};
pub use user::USER;

/// Whose users and groups an address is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Persons with an identity at an identity provider, and platform groups.
    Provider,
    /// Users and groups of a user store.
    Store,
}

/// The type of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A string.
    Text,
    /// A truth value.
    Bool,
    /// A date-time.
    Time,
    /// An address: of resources of these types, or `external`.
    Reference(&'static [&'static str]),
    /// Parts with names.
    Complex(&'static [Attribute]),
}

/// When an attribute is in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// Always.
    Always,
    /// Unless others were asked for.
    Default,
    /// When it was asked for by name.
    Request,
    /// Never.
    Never,
}

/// Where a home keeps an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: this home does not know the attribute.
    Nowhere,
    /// Nowhere, and a PATCH that names it goes through all the same.
    Ignored,
    /// With the attribute that it is part of; a complex attribute: where its parts say.
    Within,
    /// In this field of the resource.
    Field(&'static str),
    /// In this field of the resource, which only this server writes.
    Seen(&'static str),
    /// In the profile entry of this key.
    Entry(&'static str),
    /// One element of several is this field: the primary one, else that of this type, else the first. The
    /// field's element is shown as the primary one of this type.
    One {
        /// The field.
        field: &'static str,
        /// The type.
        of_type: &'static str,
        /// Whether the other elements are kept in `extra`.
        others: bool,
    },
    /// As it came, in `extra`.
    Extra,
    /// Joined from the parts of the name; ignored where it is written.
    Joined,
    /// Related resources, each set with the type of its members.
    Sets {
        /// The sets: name and type.
        sets: &'static [(&'static str, &'static str)],
        /// Whether the attribute is written here.
        written: bool,
    },
    /// Written, never shown: the home knows what to do with it.
    Secret,
}

/// What is read for an attribute beyond its type, because clients send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// An array with one `{value}` is that value.
    Truth,
    /// Text is the part `value`; empty text is no value.
    TextIsValue,
    /// A language tag whose subtags are parted by underscores, as in `en_GB`.
    Language,
}

/// An attribute.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a line of the schema's document")]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether it has many values.
    pub many: bool,
    /// Whether a resource must have it.
    pub required: bool,
    /// Whether case counts in comparisons.
    pub exact: bool,
    /// Whether no two resources have the same value.
    pub unique: bool,
    /// When it is in an answer.
    pub returned: Returned,
    /// Whether the schema says that clients are told it, though it is read where they send it.
    pub told: bool,
    /// What is read for it beyond its type.
    pub quirk: Option<Quirk>,
    provider: Place,
    store: Place,
}

/// The attributes that every resource has.
static COMMON: [Attribute; 3] = [
    text("id", "The resource's id.").exact().returned(Returned::Always).at_both(Place::Seen("id")),
    text("externalId", "The id at the client that provisions.")
        .exact()
        .at(Place::Field("externalId"), Place::Field("externalUniqueIdentifier")),
    complex(
        "meta",
        "About the resource.",
        &[
            time("created", "When it was made.").at_both(Place::Seen("createdOn")),
            time("lastModified", "When it was last changed.").at_both(Place::Seen("lastEntry")),
        ],
    ),
];

/// Attributes under one URN.
#[derive(Debug)]
pub struct Schema {
    /// The URN.
    pub urn: &'static str,
    /// A name for people.
    pub name: &'static str,
    /// What it describes.
    pub about: &'static str,
    /// The attributes.
    pub attributes: &'static [Attribute],
}

/// A type of resource.
#[derive(Debug)]
pub struct ResourceType {
    /// Its name.
    pub name: &'static str,
    /// Its path under the base address.
    pub endpoint: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its attributes.
    pub core: &'static Schema,
    /// Further attributes, in objects under their URNs.
    pub extensions: &'static [&'static Schema],
}

impl ResourceType {
    /// The schemas, the core one first.
    pub fn schemas(&self) -> impl Iterator<Item = &'static Schema> {
        std::iter::once(self.core).chain(self.extensions.iter().copied())
    }

    /// The attribute of this name of a schema that this home knows or ignores, in any case.
    pub fn find(&self, schema: &Schema, home: Home, name: &str) -> Option<&'static Attribute> {
        self.attributes(schema)
            .find(|one| one.name.eq_ignore_ascii_case(name) && one.place(home) != Place::Nowhere)
    }

    /// The attributes of one of its schemas: those of the core schema with the common ones.
    pub fn attributes(&self, schema: &Schema) -> impl Iterator<Item = &'static Attribute> {
        let (is_core, core) = (schema.urn == self.core.urn, self.core);
        let common = COMMON.iter().filter(move |_| is_core);
        let own = self.schemas().find(|one| one.urn == schema.urn).unwrap_or(core);
        common.chain(own.attributes)
    }
}

impl Attribute {
    /// Where this home keeps it.
    pub const fn place(&self, home: Home) -> Place {
        match home {
            Home::Provider => self.provider,
            Home::Store => self.store,
        }
    }

    /// Whether the home's schemas advertise it.
    pub fn is_advertised(&self, home: Home) -> bool {
        match (self.place(home), self.kind) {
            (Place::Nowhere | Place::Ignored, _) => false,
            (Place::Within, Kind::Complex(parts)) => parts.iter().any(|part| part.is_advertised(home)),
            _ => true,
        }
    }

    /// Whether only this server writes it.
    pub fn is_read_only(&self, home: Home) -> bool {
        match (self.place(home), self.kind) {
            (Place::Seen(_) | Place::Sets { written: false, .. }, _) => true,
            (Place::Within, Kind::Complex(parts)) if !self.many => {
                parts.iter().all(|part| part.is_read_only(home))
            }
            _ => false,
        }
    }

    /// Whether a client's value for it goes nowhere, without an error.
    pub fn is_ignored(&self, home: Home) -> bool {
        matches!(self.place(home), Place::Ignored | Place::Joined)
    }

    /// Its parts.
    pub const fn parts(&self) -> &'static [Self] {
        match self.kind {
            Kind::Complex(parts) => parts,
            _ => &[],
        }
    }

    /// Its part of this name that this home knows or ignores, in any case.
    pub fn part(&self, home: Home, name: &str) -> Option<&'static Self> {
        self.parts()
            .iter()
            .find(|one| one.name.eq_ignore_ascii_case(name) && one.place(home) != Place::Nowhere)
    }

    /// Whether it is an address that people are sent to.
    pub fn is_web_address(&self) -> bool {
        matches!(self.kind, Kind::Reference(types) if types.contains(&"external"))
    }

    /// Whether one of its elements says anything: it has a value, or for an attribute whose elements have none more than a
    /// type and a mark. Strict clients refuse a whole answer for an element without its value.
    pub fn says_something(&self, home: Home, element: &Value) -> bool {
        if self.part(home, "value").is_some() {
            return element
                .get("value")
                .and_then(Value::as_str)
                .is_some_and(|value| !value.trim().is_empty());
        }
        let mut names = element.as_object().into_iter().flat_map(Map::keys);
        names.any(|name| !matches!(name.as_str(), "type" | "primary"))
    }

    const fn many(self) -> Self {
        Self { many: true, ..self }
    }

    const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    const fn exact(self) -> Self {
        Self { exact: true, ..self }
    }

    const fn unique(self) -> Self {
        Self { unique: true, ..self }
    }

    const fn told(self) -> Self {
        Self { told: true, ..self }
    }

    const fn returned(self, returned: Returned) -> Self {
        Self { returned, ..self }
    }

    const fn quirk(self, quirk: Quirk) -> Self {
        Self { quirk: Some(quirk), ..self }
    }

    const fn at(self, provider: Place, store: Place) -> Self {
        Self { provider, store, ..self }
    }

    const fn at_both(self, place: Place) -> Self {
        self.at(place, place)
    }

    /// At the provider it is ignored: a directory that maps it there, too, is not refused all that it sends.
    const fn at_store(self, place: Place) -> Self {
        self.at(Place::Ignored, place)
    }
}

const fn attribute(name: &'static str, about: &'static str, kind: Kind) -> Attribute {
    Attribute {
        name,
        about,
        kind,
        many: false,
        required: false,
        exact: false,
        unique: false,
        told: false,
        returned: Returned::Default,
        quirk: None,
        provider: Place::Within,
        store: Place::Within,
    }
}

const fn text(name: &'static str, about: &'static str) -> Attribute {
    attribute(name, about, Kind::Text)
}

const fn truth(name: &'static str, about: &'static str) -> Attribute {
    attribute(name, about, Kind::Bool)
}

const fn time(name: &'static str, about: &'static str) -> Attribute {
    attribute(name, about, Kind::Time)
}

const fn reference(name: &'static str, about: &'static str, to: &'static [&'static str]) -> Attribute {
    attribute(name, about, Kind::Reference(to)).exact()
}

const fn complex(name: &'static str, about: &'static str, parts: &'static [Attribute]) -> Attribute {
    attribute(name, about, Kind::Complex(parts))
}
