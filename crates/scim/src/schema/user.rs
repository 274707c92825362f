//! Users, and the enterprise extension.

use super::{
    Attribute,
    Mapping::{Element, Entry, Extra, Field, Ignored, Joined, Secret, Sets},
    Quirk, ResourceType, Returned, Schema, complex, reference, text, truth,
};

/// Users.
pub static USER: ResourceType = ResourceType {
    name: "User",
    endpoint: "/Users",
    about: "People",
    core: &CORE,
    extensions: &[&ENTERPRISE],
};

static CORE: Schema = Schema {
    urn: "urn:ietf:params:scim:schemas:core:2.0:User",
    name: "User",
    about: "A person",
    attributes: &[
        text("userName", "The name by which the person is found; case does not count.")
            .required()
            .unique()
            .at(Field("userName"), Field("loginName")),
        complex("name", "The parts of the name.", NAME),
        text("displayName", "The name that is shown.").exact().at(Joined, Entry("displayName")),
        text("nickName", "How the person is called.").exact().at_store(Field("nickname")),
        reference("profileUrl", "A page about the person.", &["external"]).at_store(Field("profile")),
        text("title", "The title, e.g. of a position.").exact().at_store(Entry("title")),
        text("userType", "How the person belongs to the organization.").exact().at_store(Entry("userType")),
        text("preferredLanguage", "The language that the person likes to read.")
            .exact()
            .at_store(Entry("preferredLanguage")),
        text("locale", "The locale.").exact().quirk(Quirk::Language).at_store(Field("locale")),
        text("timezone", "The time zone, as the IANA names it.").exact().at_store(Field("zoneinfo")),
        truth("active", "Whether the person may sign in.")
            .quirk(Quirk::Truth)
            .at(Field("isActive"), Field("isUserActive")),
        text("password", "The password; never shown.").exact().returned(Returned::Never).at_store(Secret),
        complex("emails", "E-mail addresses.", ELEMENT).many().at(
            Element { field: "emailAddress", of_type: "work", others: false },
            Element { field: "emailAddress", of_type: "work", others: true },
        ),
        complex("phoneNumbers", "Telephone numbers.", PHONE).many().at_store(Element {
            field: "phoneNumber",
            of_type: "work",
            others: true,
        }),
        complex("photos", "Pictures.", PHOTO).many().at_both(Element {
            field: "picture",
            of_type: "photo",
            others: false,
        }),
        complex("ims", "Addresses of instant messaging.", ELEMENT).many().at_store(Extra),
        complex("addresses", "Postal addresses.", ADDRESS).many().at_store(Extra),
        complex("roles", "Roles; they give no right here.", ELEMENT).many().at_store(Extra),
        complex("entitlements", "Entitlements; they give no right here.", ELEMENT).many().at_store(Extra),
        complex("x509Certificates", "Certificates.", ELEMENT).many().at_both(Ignored),
        complex("groups", "The groups that the person is in, written at the groups.", GROUPS)
            .many()
            .at_both(Sets { sets: &[("memberOfGroups", "direct")], written: false }),
    ],
};

const NAME: &[Attribute] = &[
    text("formatted", "The parts, joined.").at_both(Joined),
    text("givenName", "The first name.").at_both(Field("firstName")),
    text("familyName", "The last name.").at_both(Field("lastName")),
    text("middleName", "The middle name.").at_store(Field("middleName")),
    text("honorificPrefix", "What comes before the name.").at_both(Ignored),
    text("honorificSuffix", "What comes after the name.").at_both(Ignored),
];

const ELEMENT: &[Attribute] = &[
    text("value", "The value."),
    text("display", "The value for people."),
    text("type", "What it is for."),
    truth("primary", "Whether it comes before the others."),
];

const PHONE: &[Attribute] = &[
    text("value", "The number.").exact(),
    text("display", "The number for people."),
    text("type", "What it is for."),
    truth("primary", "Whether it comes before the others."),
];

const PHOTO: &[Attribute] = &[
    reference("value", "The picture's address.", &["external"]),
    text("type", "What it is for."),
    truth("primary", "Whether it comes before the others."),
];

const ADDRESS: &[Attribute] = &[
    text("formatted", "The whole address, in lines."),
    text("streetAddress", "Street and number."),
    text("locality", "The town."),
    text("region", "The region."),
    text("postalCode", "The postal code."),
    text("country", "The country."),
    text("type", "What it is for."),
    truth("primary", "Whether it comes before the others."),
];

const GROUPS: &[Attribute] = &[
    text("value", "The group's id.").exact(),
    reference("$ref", "The group's address.", &["Group"]),
    text("display", "The group's name."),
    text("type", "How the person is in the group."),
];

static ENTERPRISE: Schema = Schema {
    urn: "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User",
    name: "EnterpriseUser",
    about: "A person in an organization",
    attributes: &[
        text("employeeNumber", "The number by which the organization knows the person.")
            .exact()
            .at_store(Entry("employeeNumber")),
        text("costCenter", "The cost center.").exact().at_store(Entry("costCenter")),
        text("organization", "The organization.").exact().at_store(Entry("organization")),
        text("division", "The division.").exact().at_store(Entry("division")),
        text("department", "The department.").exact().at(Field("organizationalUnit"), Entry("department")),
        complex("manager", "The person's manager.", MANAGER).quirk(Quirk::TextIsValue),
    ],
};

const MANAGER: &[Attribute] = &[
    text("value", "The manager's id.")
        .exact()
        .quirk(Quirk::TextIsValue)
        .at(Field("managerId"), Entry("manager")),
    reference("$ref", "The manager's address.", &["User"]),
];
