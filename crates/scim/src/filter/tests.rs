//! What filters and orders in SCIM's names become.

use chancery_resource::parse_filter;

use super::{Condition, condition_of, sort_field};
use crate::{GROUP, Home, ResourceType, ScimType, USER};

/// Both filters without their columns.
fn check(of: &'static ResourceType, home: Home, filter: &str, expected: &str) {
    let found = condition_of(of, home, filter).unwrap();
    let expected = match expected {
        "always" => Condition::Always,
        "never" => Condition::Never,
        text => Condition::When(parse_filter(text).unwrap()),
    };
    let shown = |condition: &Condition| {
        let text = format!("{condition:?}");
        let mut parts = text.split("column: ");
        let first = parts.next().unwrap().to_owned();
        parts.fold(first, |text, part| text + part.trim_start_matches(char::is_numeric))
    };
    assert_eq!(shown(&found), shown(&expected), "{filter}");
}

#[test]
fn names_become_fields() {
    let core = "urn:ietf:params:scim:schemas:core:2.0:User";
    let enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
    for (filter, expected) in [
        ("USERNAME eq \"ada\"".to_owned(), "loginName eq \"ada\""),
        (format!("{core}:userName eq \"ada\""), "loginName eq \"ada\""),
        (format!("{core}:name.familyName sw \"L\""), "lastName sw \"L\""),
        (
            "externalId eq \"7\" and not (active eq true)".to_owned(),
            "externalUniqueIdentifier eq \"7\" and not (isUserActive eq true)",
        ),
        ("meta.lastModified gt \"2026-01-01T00:00:00Z\"".to_owned(), "lastEntry gt \"2026-01-01T00:00:00Z\""),
    ] {
        check(&USER, Home::Store, &filter, expected);
    }
    check(&USER, Home::Provider, &format!("{enterprise}:department eq \"E\""), "organizationalUnit eq \"E\"");
    let id = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
    let manager = format!("managerId eq \"{id}\"");
    check(&USER, Home::Provider, &format!("{enterprise}:manager eq \"{id}\""), &manager);
    check(&USER, Home::Provider, &format!("{enterprise}:manager eq \"7\""), "never");
}

#[test]
fn entries_are_found_by_their_keys() {
    check(&USER, Home::Store, "title sw \"C\"", "userProfiles[key eq \"title\" and value sw \"C\"]");
    check(
        &USER,
        Home::Store,
        "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:costCenter pr",
        "userProfiles[key eq \"costCenter\" and value pr]",
    );
}

#[test]
fn the_mapped_address_is_primary_and_for_work() {
    for (filter, expected) in [
        ("emails.value eq \"a\"", "emailAddress eq \"a\""),
        ("emails eq \"a\"", "emailAddress eq \"a\""),
        ("emails[type eq \"work\"].value eq \"a\"", "emailAddress pr and emailAddress eq \"a\""),
        ("emails[type eq \"work\" and value eq \"a\"]", "emailAddress pr and emailAddress eq \"a\""),
        ("emails[primary eq true]", "emailAddress pr"),
        ("emails.type eq \"work\"", "emailAddress pr"),
        ("emails[type eq \"home\"].value eq \"a\"", "never"),
        ("not (emails[type eq \"home\"])", "always"),
        ("userName eq \"x\" or emails.type eq \"home\"", "loginName eq \"x\""),
    ] {
        check(&USER, Home::Store, filter, expected);
    }
}

#[test]
fn members_are_found_in_their_sets() {
    let id = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
    let both = format!("memberUsers.id eq \"{id}\" or memberGroups.id eq \"{id}\"");
    check(&GROUP, Home::Store, &format!("members.value eq \"{id}\""), &both);
    check(&GROUP, Home::Store, &format!("members[value eq \"{id}\"]"), &both);
    let of_type = format!("members[value eq \"{id}\" and type eq \"User\"]");
    check(&GROUP, Home::Store, &of_type, &format!("memberUsers.id eq \"{id}\""));
    check(&GROUP, Home::Store, "members.type eq \"Group\"", "memberGroups pr");
    let groups = format!("groups.value eq \"{id}\"");
    check(&USER, Home::Store, &groups, &format!("memberOfGroups.id eq \"{id}\""));
    check(&USER, Home::Store, "groups pr", "memberOfGroups pr");
}

#[test]
fn nobody_has_an_id_that_is_none() {
    check(&USER, Home::Store, "id eq \"nobody\"", "never");
    check(&USER, Home::Provider, "id ne \"nobody\"", "always");
    check(&USER, Home::Store, "groups.value eq \"nobody\"", "never");
    check(&USER, Home::Store, "groups.value ne \"nobody\"", "memberOfGroups pr");
    check(&GROUP, Home::Store, "members[value eq \"nobody\"]", "never");
}

#[test]
fn what_is_null_is_what_there_is_not() {
    check(&USER, Home::Store, "groups.value eq null", "not (memberOfGroups pr)");
    check(&GROUP, Home::Store, "members eq null", "not (memberUsers pr or memberGroups pr)");
    check(&USER, Home::Store, "emails.value ne null", "emailAddress pr");
    check(&USER, Home::Store, "title eq null", "not (userProfiles[key eq \"title\" and value pr])");
}

#[test]
fn what_cannot_be_found_is_refused() {
    for filter in [
        "nobody pr",
        "roles.value eq \"x\"",
        "password eq \"x\"",
        "name[givenName pr]",
        "emails[nobody pr]",
        "emails[value[type pr]]",
        "userName",
        "members.display eq \"x\"",
        "groups.primary eq true",
        "title co \"x\"",
        "meta.created pr",
    ] {
        let refusal = condition_of(&USER, Home::Store, filter).unwrap_err();
        assert_eq!(refusal.scim_type, Some(ScimType::InvalidFilter), "{filter}");
    }
}

#[test]
fn refusals_name_what_the_client_wrote() {
    for (filter, sentence) in [
        ("active eq \"yes\"", "Column 1: active compares by eq and ne with true or false."),
        ("userName sw \"\"", "Column 1: userName is searched for a text that is not empty."),
        ("name.givenName eq 7", "Column 1: name.givenName compares with a string."),
        ("title sw \"\"", "Column 1: title is searched for a text that is not empty."),
        ("id co \"7\"", "Column 1: id is an id, and not searched for a part."),
        ("groups.value gt \"7\"", "Column 1: groups.value compares with a UUID."),
        ("emails[value sw \"\"]", "Column 8: value is searched for a text that is not empty."),
        (
            "meta.lastModified eq \"2026-01-01T00:00:00Z\"",
            "Column 1: meta.lastModified compares by gt, ge, lt and le with a date-time (RFC 3339).",
        ),
    ] {
        let refusal = condition_of(&USER, Home::Store, filter).unwrap_err();
        assert_eq!((refusal.detail.as_str(), refusal.scim_type), (sentence, Some(ScimType::InvalidFilter)));
    }
}

#[test]
fn text_says_a_truth_value() {
    check(&USER, Home::Store, "active eq \"True\"", "isUserActive eq true");
    check(&USER, Home::Provider, "active ne \"false\"", "isActive ne false");
    check(&USER, Home::Store, "emails[primary eq \"True\"]", "emailAddress pr");
    check(&USER, Home::Store, "emails.primary eq \"FALSE\"", "never");
}

#[test]
fn some_names_give_an_order() {
    assert_eq!(sort_field(&USER, Home::Store, "username"), Ok("loginName"));
    assert_eq!(sort_field(&USER, Home::Provider, "name.familyName"), Ok("lastName"));
    assert_eq!(sort_field(&USER, Home::Store, "emails.value"), Ok("emailAddress"));
    assert_eq!(sort_field(&GROUP, Home::Store, "displayName"), Ok("name"));
    assert_eq!(sort_field(&USER, Home::Store, "meta.created"), Ok("createdOn"));
    for name in ["title", "displayName", "emails.type", "name", "active", "members"] {
        let refusal = sort_field(&USER, Home::Store, name).unwrap_err();
        assert_eq!(refusal.scim_type, Some(ScimType::InvalidValue), "{name}");
    }
}
