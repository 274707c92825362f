//! The attributes of users and groups, and how each target stores them.

mod group;
mod user;

pub use group::GROUP;
use serde_json::{Map, Value};
pub use user::USER;

/// The owner of the users and groups of a request: the SCIM target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Persons with an identity at an identity provider, and platform groups.
    Provider,
    /// Users and groups of a user store.
    Store,
}

/// The type of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum AttributeType {
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

/// The `returned` characteristic (RFC 7643, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// Always.
    Always,
    /// Unless other attributes were requested.
    Default,
    /// When requested by name.
    Request,
    /// Never.
    Never,
}

/// How a target stores an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// Not at all: this target does not have the attribute.
    Unmapped,
    /// Not at all, and a PATCH of it is accepted without effect.
    Ignored,
    /// As part of its parent attribute; a complex attribute: as its sub-attributes are mapped.
    Within,
    /// In this field of the row.
    Field(&'static str),
    /// In this field of the row, which only this server writes.
    ReadOnly(&'static str),
    /// In the profile entry of this key.
    Entry(&'static str),
    /// One element of several is this field: the primary one, else that of this type, else the first. It is shown as the
    /// primary one of this type.
    Element {
        /// The field.
        field: &'static str,
        /// The type.
        of_type: &'static str,
        /// Whether the other elements are stored in `extra`.
        others: bool,
    },
    /// As it was sent, in `extra`.
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
    /// Write-only, processed by the target.
    Secret,
}

/// How clients deviate from the attribute's type, and what is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// An array with one `{value}` is that value.
    Truth,
    /// Text is the sub-attribute `value`; empty text is no value.
    TextIsValue,
    /// A language tag whose subtags are separated by underscores, as in `en_GB`.
    Language,
}

/// An attribute.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a line of the schema's document")]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// The description for people.
    pub about: &'static str,
    /// Its type.
    pub kind: AttributeType,
    /// Whether it has many values.
    pub many: bool,
    /// Whether a resource must have it.
    pub required: bool,
    /// Whether comparisons are case-sensitive (`caseExact`).
    pub exact: bool,
    /// Whether no two resources have the same value.
    pub unique: bool,
    /// When it is in an answer.
    pub returned: Returned,
    /// Whether the schema advertises it as read-only, though it is accepted in requests.
    pub read_only_in_schema: bool,
    /// Accepted deviations from its type.
    pub quirk: Option<Quirk>,
    provider: Mapping,
    store: Mapping,
}

/// The attributes that every resource has.
static COMMON: [Attribute; 3] = [
    text("id", "The resource's id.").exact().returned(Returned::Always).at_both(Mapping::ReadOnly("id")),
    text("externalId", "The id at the client that provisions.")
        .exact()
        .at(Mapping::Field("externalId"), Mapping::Field("externalUniqueIdentifier")),
    complex(
        "meta",
        "About the resource.",
        &[
            time("created", "When it was made.").at_both(Mapping::ReadOnly("createdOn")),
            time("lastModified", "When it was last changed.").at_both(Mapping::ReadOnly("lastEntry")),
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
    /// The description.
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

    /// The attribute of this name, in any case, of a schema, if this target has or ignores it.
    pub fn find(&self, schema: &Schema, target: Target, name: &str) -> Option<&'static Attribute> {
        self.attributes(schema)
            .find(|one| one.name.eq_ignore_ascii_case(name) && one.mapping(target) != Mapping::Unmapped)
    }

    /// The attributes of one of its schemas; the core schema includes the common ones.
    pub fn attributes(&self, schema: &Schema) -> impl Iterator<Item = &'static Attribute> {
        let (is_core, core) = (schema.urn == self.core.urn, self.core);
        let common = COMMON.iter().filter(move |_| is_core);
        let own = self.schemas().find(|one| one.urn == schema.urn).unwrap_or(core);
        common.chain(own.attributes)
    }
}

impl Attribute {
    /// How this target stores it.
    pub const fn mapping(&self, target: Target) -> Mapping {
        match target {
            Target::Provider => self.provider,
            Target::Store => self.store,
        }
    }

    /// Whether the target's schemas list it.
    pub fn is_advertised(&self, target: Target) -> bool {
        match (self.mapping(target), self.kind) {
            (Mapping::Unmapped | Mapping::Ignored, _) => false,
            (Mapping::Within, AttributeType::Complex(parts)) => {
                parts.iter().any(|part| part.is_advertised(target))
            }
            _ => true,
        }
    }

    /// Whether only this server writes it.
    pub fn is_read_only(&self, target: Target) -> bool {
        match (self.mapping(target), self.kind) {
            (Mapping::ReadOnly(_) | Mapping::Sets { written: false, .. }, _) => true,
            (Mapping::Within, AttributeType::Complex(parts)) if !self.many => {
                parts.iter().all(|part| part.is_read_only(target))
            }
            _ => false,
        }
    }

    /// Whether a value sent by a client is dropped without an error.
    pub fn is_ignored(&self, target: Target) -> bool {
        matches!(self.mapping(target), Mapping::Ignored | Mapping::Joined)
    }

    /// Its sub-attributes.
    pub const fn parts(&self) -> &'static [Self] {
        match self.kind {
            AttributeType::Complex(parts) => parts,
            _ => &[],
        }
    }

    /// The sub-attribute of this name, in any case, if this target has or ignores it.
    pub fn part(&self, target: Target, name: &str) -> Option<&'static Self> {
        self.parts()
            .iter()
            .find(|one| one.name.eq_ignore_ascii_case(name) && one.mapping(target) != Mapping::Unmapped)
    }

    /// Whether it is an address that people open.
    pub fn is_web_address(&self) -> bool {
        matches!(self.kind, AttributeType::Reference(types) if types.contains(&"external"))
    }

    /// Whether an element has content: a value, or for an attribute whose elements have none more than a type and
    /// `primary`. Strict clients refuse a whole response for an element without its value.
    pub fn has_content(&self, target: Target, element: &Value) -> bool {
        if self.part(target, "value").is_some() {
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

    const fn read_only_in_schema(self) -> Self {
        Self { read_only_in_schema: true, ..self }
    }

    const fn returned(self, returned: Returned) -> Self {
        Self { returned, ..self }
    }

    const fn quirk(self, quirk: Quirk) -> Self {
        Self { quirk: Some(quirk), ..self }
    }

    const fn at(self, provider: Mapping, store: Mapping) -> Self {
        Self { provider, store, ..self }
    }

    const fn at_both(self, mapping: Mapping) -> Self {
        self.at(mapping, mapping)
    }

    /// The provider ignores it: a directory that maps the attribute at both targets is not rejected for it.
    const fn at_store(self, mapping: Mapping) -> Self {
        self.at(Mapping::Ignored, mapping)
    }
}

const fn attribute(name: &'static str, about: &'static str, kind: AttributeType) -> Attribute {
    Attribute {
        name,
        about,
        kind,
        many: false,
        required: false,
        exact: false,
        unique: false,
        read_only_in_schema: false,
        returned: Returned::Default,
        quirk: None,
        provider: Mapping::Within,
        store: Mapping::Within,
    }
}

const fn text(name: &'static str, about: &'static str) -> Attribute {
    attribute(name, about, AttributeType::Text)
}

const fn truth(name: &'static str, about: &'static str) -> Attribute {
    attribute(name, about, AttributeType::Bool)
}

const fn time(name: &'static str, about: &'static str) -> Attribute {
    attribute(name, about, AttributeType::Time)
}

const fn reference(name: &'static str, about: &'static str, to: &'static [&'static str]) -> Attribute {
    attribute(name, about, AttributeType::Reference(to)).exact()
}

const fn complex(name: &'static str, about: &'static str, parts: &'static [Attribute]) -> Attribute {
    attribute(name, about, AttributeType::Complex(parts))
}
