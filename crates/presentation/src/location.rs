//! Locations: the path of an asset or a view, which is also its key.

use uuid::Uuid;

/// The most characters of a location.
pub const LONGEST: usize = 1024;

/// The locations of one segment that are routes of assets or views.
const ROUTES: [&str; 7] =
    ["batch", "createorupdate", "groupid", "userid", "idpinstanceid", "mimetypes", "create"];

/// The route that has more segments below it.
const ROUTE_ABOVE_OTHERS: &str = "viewtemplate";

/// The route of two segments.
const ROUTE_OF_TWO: &str = "createorupdate/batch";

/// The kind of object at a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    Asset,
    /// A page.
    View,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Asset, Self::View];

    /// The first segment of locations that the server assigns.
    pub const fn segment(self) -> &'static str {
        match self {
            Self::Asset => "assets",
            Self::View => "views",
        }
    }
}

/// The level of an asset or a view (`applyToType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyTo {
    /// The complete installation.
    Global,
    /// A subscription.
    Subscription,
    /// A client application.
    ClientApp,
    /// A tenant.
    Tenant,
}

impl ApplyTo {
    /// All values, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::Global, Self::Subscription, Self::ClientApp, Self::Tenant];

    /// The value's name in the contract.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "Global",
            Self::Subscription => "Subscription",
            Self::ClientApp => "ClientApp",
            Self::Tenant => "Tenant",
        }
    }

    /// The value's segment in a location.
    pub const fn segment(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Subscription => "subscription",
            Self::ClientApp => "clientapp",
            Self::Tenant => "tenant",
        }
    }

    /// The value of this name in the contract.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// The normalised form of a location, with a leading slash. A location from a URL must be
/// percent-decoded already.
///
/// # Errors
/// The mistake, as the end of a sentence that begins with the member's name.
pub fn normalise(location: &str) -> Result<String, String> {
    let path = location.strip_prefix('/').unwrap_or(location);
    if path.chars().count() >= LONGEST {
        return Err(format!("must have at most {LONGEST} characters"));
    }
    for segment in path.split('/') {
        match segment {
            "" => return Err("must have no empty segment".to_owned()),
            "." | ".." => return Err("must have no segment . or ..".to_owned()),
            _ => {}
        }
    }
    if path.contains(|letter: char| letter == '\\' || letter.is_control()) {
        return Err("must have no backslash and no control character".to_owned());
    }
    // in a URL that ends with a location, these would be taken for a route
    let first = path.split('/').next().unwrap_or_default().to_ascii_lowercase();
    if first == ROUTE_ABOVE_OTHERS || (first.len() == path.len() && ROUTES.contains(&first.as_str())) {
        return Err(format!("must not be /{first}, which is a route"));
    }
    if path.eq_ignore_ascii_case(ROUTE_OF_TWO) {
        return Err(format!("must not be /{ROUTE_OF_TWO}, which is a route"));
    }
    Ok(format!("/{path}"))
}

/// The location that the server assigns by the level of the asset or view:
/// `/assets/tenant/ID/logo.png`, `/views/global/SignIn`.
///
/// # Errors
/// The mistake in the name or the id. All but `Global` need an id; `Global` has none.
pub fn expand(kind: Kind, apply_to: ApplyTo, id: Option<Uuid>, name: &str) -> Result<String, String> {
    if name.contains('/') {
        return Err("must be a name without a slash".to_owned());
    }
    match (apply_to, id) {
        (ApplyTo::Global, Some(_)) => Err("must have no id when it applies globally".to_owned()),
        (ApplyTo::Global, None) | (_, Some(_)) => normalise(&format!("{}{name}", prefix(kind, apply_to, id))),
        (_, None) => Err(format!("must have the id of what it applies to ({})", apply_to.name())),
    }
}

/// The prefix of the locations that the server assigns to one owner: `/views/tenant/ID/`.
pub fn prefix(kind: Kind, apply_to: ApplyTo, id: Option<Uuid>) -> String {
    let (above, level) = (kind.segment(), apply_to.segment());
    id.map_or_else(|| format!("/{above}/{level}/"), |id| format!("/{above}/{level}/{id}/"))
}

/// The level of a normalised location. A location of the caller's own form applies globally.
/// `None` where it resembles an assigned location but is malformed: its owner would be unknown.
pub fn level_of(location: &str) -> Option<(ApplyTo, Option<Uuid>)> {
    let mut segments = location.split('/').skip(1);
    let first = segments.next()?;
    let Some(kind) = Kind::ALL.into_iter().find(|kind| first.eq_ignore_ascii_case(kind.segment())) else {
        return Some((ApplyTo::Global, None));
    };
    let Some(second) = segments.next() else { return Some((ApplyTo::Global, None)) };
    let level = ApplyTo::ALL.into_iter().find(|level| second.eq_ignore_ascii_case(level.segment()));
    let Some(level) = level else { return Some((ApplyTo::Global, None)) };
    // in another case it would be a second location that looks the same
    if first != kind.segment() || second != level.segment() {
        return None;
    }
    let id = if level == ApplyTo::Global {
        None
    } else {
        let text = segments.next()?;
        let id = Uuid::try_parse(text).ok()?;
        // another spelling of the id would be one, too
        (id.to_string() == text).then_some(())?;
        Some(id)
    };
    segments.next()?;
    Some((level, id))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::{ApplyTo, Kind, LONGEST, expand, level_of, normalise};

    const ID: Uuid = Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);

    #[test]
    fn locations_have_one_form() {
        for (given, normal) in [
            ("/a", "/a"),
            ("a/b.css", "/a/b.css"),
            ("/ä ö/..x", "/ä ö/..x"),
            ("/batch/x", "/batch/x"),
            ("/a/viewtemplate", "/a/viewtemplate"),
        ] {
            assert_eq!(normalise(given).as_deref(), Ok(normal));
        }
    }

    #[test]
    fn invalid_locations_are_refused() {
        for given in [
            "",
            "/",
            "//",
            "//a",
            "/a/",
            "a//b",
            ".",
            "/..",
            "/a/../b",
            "/a/./b",
            "/a\\b",
            "/a\0",
            "/a\nb",
            "/a\u{85}",
            "batch",
            "/createorupdate",
            "/groupId",
            "/USERID",
            "/idpInstanceId",
            "/mimetypes",
            "/create",
            "/viewtemplate",
            "/viewtemplate/names",
            "/ViewTemplate/content/SignIn",
        ] {
            assert!(normalise(given).is_err(), "{given:?}");
        }
        let longest = "ä".repeat(LONGEST - 1);
        assert_eq!(normalise(&longest).unwrap().chars().count(), LONGEST);
        assert!(normalise(&format!("{longest}x")).is_err());
    }

    #[test]
    fn an_expanded_location_has_its_level() {
        for kind in Kind::ALL {
            for level in ApplyTo::ALL {
                let id = (level != ApplyTo::Global).then_some(ID);
                let location = expand(kind, level, id, "a.b").unwrap();
                assert_eq!(level_of(&location), Some((level, id)), "{location}");
                assert_eq!(normalise(&location).as_ref(), Ok(&location));
                let other = (level == ApplyTo::Global).then_some(ID);
                assert!(expand(kind, level, other, "a.b").is_err());
                for invalid in ["", "..", "a/b", "a\\b", "/a"] {
                    assert!(expand(kind, level, id, invalid).is_err(), "{invalid:?}");
                }
                assert_eq!(ApplyTo::named(level.name()), Some(level));
            }
        }
        assert_eq!(expand(Kind::View, ApplyTo::Global, None, "SignIn").unwrap(), "/views/global/SignIn");
        assert_eq!(
            expand(Kind::Asset, ApplyTo::ClientApp, Some(ID), "x.css").unwrap(),
            format!("/assets/clientapp/{ID}/x.css")
        );
    }

    #[test]
    fn levels_of_other_locations() {
        for free in ["/logo.png", "/assets", "/assets/logo.png", "/css/tenant/x", "/views/SignIn"] {
            assert_eq!(level_of(free), Some((ApplyTo::Global, None)), "{free}");
        }
        assert_eq!(level_of(&format!("/assets/tenant/{ID}/css/a.css")), Some((ApplyTo::Tenant, Some(ID))));
        let upper = ID.to_string().to_uppercase();
        for unclear in [
            "/assets/tenant".to_owned(),
            "/assets/tenant/x/y".to_owned(),
            "/views/global".to_owned(),
            format!("/assets/tenant/{ID}"),
            format!("/assets/Tenant/{ID}/x"),
            format!("/Assets/tenant/{ID}/x"),
            format!("/assets/tenant/{upper}/x"),
            format!("/assets/tenant/{}/x", ID.simple()),
        ] {
            assert_eq!(level_of(&unclear), None, "{unclear}");
        }
    }

    proptest! {
        #[test]
        fn normalising_is_idempotent(given in "(/|\\.|\\\\|batch|[a-z ä%]|\\PC){0,20}") {
            if let Ok(normal) = normalise(&given) {
                prop_assert_eq!(normalise(&normal), Ok(normal.clone()));
                prop_assert!(normal.starts_with('/'));
                prop_assert!(normal.split('/').skip(1).all(|part| !matches!(part, "" | "." | "..")));
                let _ = level_of(&normal);
            }
        }

        #[test]
        fn reading_a_level_never_panics(given in "\\PC{0,80}") {
            let _ = level_of(&given);
        }
    }
}
