//! Translation of filters and sort orders.

use chancery_resource::parse_filter;

use super::{Condition, condition_of, sort_field};
use crate::{GROUP, ResourceType, ScimType, Target, USER};

/// Compares both filters without their columns.
fn check(of: &'static ResourceType, target: Target, filter: &str, expected: &str) {
    let actual = condition_of(of, target, filter).unwrap();
    let expected = match expected {
        "always" => Condition::Always,
        "never" => Condition::Never,
        text => Condition::When(parse_filter(text).unwrap()),
    };
    let without_columns = |condition: &Condition| {
        let text = format!("{condition:?}");
        let mut parts = text.split("column: ");
        let first = parts.next().unwrap().to_owned();
        parts.fold(first, |text, part| text + part.trim_start_matches(char::is_numeric))
    };
    assert_eq!(without_columns(&actual), without_columns(&expected), "{filter}");
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
        check(&USER, Target::Store, &filter, expected);
    }
    check(
        &USER,
        Target::Provider,
        &format!("{enterprise}:department eq \"E\""),
        "organizationalUnit eq \"E\"",
    );
    let id = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
    let manager = format!("managerId eq \"{id}\"");
    check(&USER, Target::Provider, &format!("{enterprise}:manager eq \"{id}\""), &manager);
    check(&USER, Target::Provider, &format!("{enterprise}:manager eq \"7\""), "never");
}

#[test]
fn entries_are_found_by_their_keys() {
    check(&USER, Target::Store, "title sw \"C\"", "userProfiles[key eq \"title\" and value sw \"C\"]");
    check(
        &USER,
        Target::Store,
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
        check(&USER, Target::Store, filter, expected);
    }
}

#[test]
fn members_are_found_in_their_sets() {
    let id = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
    let both = format!("memberUsers.id eq \"{id}\" or memberGroups.id eq \"{id}\"");
    check(&GROUP, Target::Store, &format!("members.value eq \"{id}\""), &both);
    check(&GROUP, Target::Store, &format!("members[value eq \"{id}\"]"), &both);
    let of_type = format!("members[value eq \"{id}\" and type eq \"User\"]");
    check(&GROUP, Target::Store, &of_type, &format!("memberUsers.id eq \"{id}\""));
    check(&GROUP, Target::Store, "members.type eq \"Group\"", "memberGroups pr");
    let groups = format!("groups.value eq \"{id}\"");
    check(&USER, Target::Store, &groups, &format!("memberOfGroups.id eq \"{id}\""));
    check(&USER, Target::Store, "groups pr", "memberOfGroups pr");
}

#[test]
fn text_that_is_not_a_uuid_matches_no_id() {
    check(&USER, Target::Store, "id eq \"nobody\"", "never");
    check(&USER, Target::Provider, "id ne \"nobody\"", "always");
    check(&USER, Target::Store, "groups.value eq \"nobody\"", "never");
    check(&USER, Target::Store, "groups.value ne \"nobody\"", "memberOfGroups pr");
    check(&GROUP, Target::Store, "members[value eq \"nobody\"]", "never");
}

#[test]
fn eq_null_tests_for_absence() {
    check(&USER, Target::Store, "groups.value eq null", "not (memberOfGroups pr)");
    check(&GROUP, Target::Store, "members eq null", "not (memberUsers pr or memberGroups pr)");
    check(&USER, Target::Store, "emails.value ne null", "emailAddress pr");
    check(&USER, Target::Store, "title eq null", "not (userProfiles[key eq \"title\" and value pr])");
}

#[test]
fn attributes_that_cannot_be_searched_are_rejected() {
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
        let error = condition_of(&USER, Target::Store, filter).unwrap_err();
        assert_eq!(error.scim_type, Some(ScimType::InvalidFilter), "{filter}");
    }
}

#[test]
fn errors_name_the_attribute_as_the_client_wrote_it() {
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
        let error = condition_of(&USER, Target::Store, filter).unwrap_err();
        assert_eq!((error.detail.as_str(), error.scim_type), (sentence, Some(ScimType::InvalidFilter)));
    }
}

#[test]
fn truth_values_are_accepted_as_text() {
    check(&USER, Target::Store, "active eq \"True\"", "isUserActive eq true");
    check(&USER, Target::Provider, "active ne \"false\"", "isActive ne false");
    check(&USER, Target::Store, "emails[primary eq \"True\"]", "emailAddress pr");
    check(&USER, Target::Store, "emails.primary eq \"FALSE\"", "never");
}

#[test]
fn only_some_attributes_can_be_sorted_by() {
    assert_eq!(sort_field(&USER, Target::Store, "username"), Ok("loginName"));
    assert_eq!(sort_field(&USER, Target::Provider, "name.familyName"), Ok("lastName"));
    assert_eq!(sort_field(&USER, Target::Store, "emails.value"), Ok("emailAddress"));
    assert_eq!(sort_field(&GROUP, Target::Store, "displayName"), Ok("name"));
    assert_eq!(sort_field(&USER, Target::Store, "meta.created"), Ok("createdOn"));
    for name in ["title", "displayName", "emails.type", "name", "active", "members"] {
        let error = sort_field(&USER, Target::Store, name).unwrap_err();
        assert_eq!(error.scim_type, Some(ScimType::InvalidValue), "{name}");
    }
}
