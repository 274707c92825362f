//! The directory of resources: every resource of the API with its operations.

mod read;

use std::sync::OnceLock;

use chancery_management::{
    application::APPLICATION_USER, client_app::CLIENT_APP, idp_instance::IDP_INSTANCE,
    mfa_instance::MFA_INSTANCE, sign_in::session::SIGN_IN_SESSION, tenant::TENANT,
};
use chancery_record::{Field, Kind, Sealing};
use chancery_resource::{Action, Body, Custom, Op, Reply, Service, Shape};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::{fields::plain, presentation::Presentation};

/// A resource of the console.
pub struct Resource {
    /// Name in URLs: that of its API paths, or of its shape if the paths are written in another style.
    pub name: &'static str,
    /// Its shape.
    pub shape: &'static Shape,
    /// Whether it is in a user store.
    pub is_of_store: bool,
    /// Lists the rows.
    pub list: Option<&'static Op>,
    /// Finds rows by a name prefix, with a better index than the list has.
    pub search: Option<&'static Op>,
    /// Reads one row.
    pub read: Option<&'static Op>,
    /// Creates a row.
    pub create: Option<&'static Op>,
    /// Changes a row.
    pub patch: Option<&'static Op>,
    /// Deletes a row.
    pub delete: Option<&'static Op>,
    /// The batch operations.
    pub batches: Vec<&'static Op>,
    /// All other operations on one row, in the order of the API.
    pub others: Vec<&'static Op>,
    /// The operations on the whole resource, except listing and searching.
    pub of_all: Vec<&'static Op>,
    /// The subresources of a row, which are addressed by their owner only.
    pub owned: Vec<Owned>,
    /// Its presentation.
    pub presentation: &'static Presentation,
}

/// A subresource: entries that a row owns, at a path below it.
pub struct Owned {
    /// Name in URLs, which is that of its API paths.
    pub name: &'static str,
    /// Its shape.
    pub shape: &'static Shape,
    /// Lists the entries of a row.
    pub list: Option<&'static Op>,
    /// Reads one entry.
    pub read: Option<&'static Op>,
    /// Creates an entry.
    pub create: Option<&'static Op>,
    /// Changes an entry: some of its members, or all.
    pub change: Option<&'static Op>,
    /// Deletes an entry.
    pub delete: Option<&'static Op>,
    /// All other operations on one entry.
    pub others: Vec<&'static Op>,
}

/// All resources with a list, in the order of the API.
static RESOURCES: OnceLock<Vec<Resource>> = OnceLock::new();

/// Builds the directory from the operations, once. The caller supplies the presentations; before the first call the
/// directory is empty.
pub fn fill(presentation: fn(&Shape) -> &'static Presentation) {
    RESOURCES.get_or_init(|| {
        let mut all = Vec::new();
        for service in [&chancery_userstore::SERVICE, &chancery_management::SERVICE] {
            read::add(&mut all, service);
        }
        all.retain(|one: &Resource| one.list.is_some());
        for one in &mut all {
            one.owned.retain(|owned| owned.list.is_some() && owned.create.or(owned.delete).is_some());
            one.presentation = presentation(one.shape);
        }
        all
    });
}

/// All resources.
///
/// # Panics
/// Before the directory is filled.
pub fn resources() -> &'static [Resource] {
    let filled = RESOURCES.get();
    assert!(filled.is_some(), "the directory of resources is not filled");
    filled.map_or(&[], Vec::as_slice)
}

/// The operations of both services.
pub fn operations() -> impl Iterator<Item = &'static Op> {
    [&chancery_userstore::SERVICE, &chancery_management::SERVICE].into_iter().flat_map(Service::all)
}

/// The fields of a body that is not a representation of the resource: of an operation with a form of its own.
pub fn body_fields(op: &Op) -> Vec<&'static Field> {
    match op.action {
        Action::Custom(Custom { body: Body::Form(form), .. }) => form.fields.iter().collect(),
        Action::ReplaceMembers(fields) => fields.to_vec(),
        _ => Vec::new(),
    }
}

/// All fields that an operation declares: of its resource, of what is nested in it, of its body and of its answer.
pub fn declared_fields(op: &'static Op) -> impl Iterator<Item = &'static Field> {
    let answer = match op.action {
        Action::Custom(Custom { reply: Reply::Form(form), .. }) => form.fields,
        _ => &[],
    };
    let nested = op.shape.relations.iter().flat_map(|relation| relation.target.fields);
    op.shape.fields.iter().chain(nested).chain(body_fields(op)).chain(answer)
}

/// The resource of this name, in user stores or outside of them.
pub fn find(name: &str, is_of_store: bool) -> Option<&'static Resource> {
    resources().iter().find(|one| one.name == name && one.is_of_store == is_of_store)
}

/// The resource whose rows are of this shape.
pub fn of_shape(shape: &Shape) -> Option<&'static Resource> {
    resources().iter().find(|one| std::ptr::eq(one.shape, shape))
}

/// The name of an operation that a service declares. [`operation_name`] constructs it, so that a misspelt name does not
/// compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationName(&'static str);

impl OperationName {
    /// The name of a declared operation. Evaluated at compile time: an undeclared name is a compile error.
    pub const fn declared(name: &'static str) -> Self {
        assert!(
            chancery_userstore::SERVICE.declares(name) || chancery_management::SERVICE.declares(name),
            "neither service declares an operation of this name"
        );
        Self(name)
    }

    /// The text of the name.
    pub const fn text(self) -> &'static str {
        self.0
    }

    /// Whether an operation has this name.
    pub fn is_of(self, op: &Op) -> bool {
        op.name == self.0
    }
}

/// The name of an operation, as an [`OperationName`]. An undeclared name does not compile.
macro_rules! operation_name {
    ($name:literal) => {{
        // a const item, so that it is evaluated at compile time in any context
        const NAME: $crate::shell::directory::OperationName =
            $crate::shell::directory::OperationName::declared($name);
        NAME
    }};
}

/// The operation of this name as an `Option`, whatever its path. An undeclared name does not compile.
macro_rules! operation {
    ($name:literal) => {
        $crate::shell::directory::of_name($crate::shell::directory::operation_name!($name))
    };
}

pub(crate) use {operation, operation_name};

/// The operation of this name, whatever its path.
pub fn of_name(name: OperationName) -> Option<&'static Op> {
    operations().find(|op| name.is_of(op))
}

/// Fields that contain ids of another resource without a declared parent: the field, and the shape of the referenced
/// rows.
static NAMED: [(&str, &Shape); 7] = [
    ("platformUserId", &APPLICATION_USER),
    ("clientAppId", &CLIENT_APP),
    ("tenantId", &TENANT),
    ("mfaInstanceId", &MFA_INSTANCE),
    ("sessionId", &SIGN_IN_SESSION),
    ("idpInstanceId", &IDP_INSTANCE),
    ("replacementIdpInstanceId", &IDP_INSTANCE),
];

/// The resource that ids in a field of this name refer to.
pub fn referenced(wire: &str) -> Option<&'static Resource> {
    let known = NAMED.iter().find(|(known, _)| *known == wire);
    known.and_then(|(_, shape)| of_shape(shape))
}

impl Resource {
    /// Whether its rows are of this shape.
    pub fn is_of(&self, shape: &Shape) -> bool {
        std::ptr::eq(self.shape, shape)
    }

    /// The URL of its list. In a user store the URL starts with the store's.
    pub fn address(&self, store: Option<&str>) -> String {
        match store.filter(|_| self.is_of_store) {
            Some(store) => format!("/console/store/{}/{}", encoded(store), self.name),
            None => format!("/console/{}", self.name),
        }
    }

    /// Its key.
    pub fn key(&self) -> Option<&'static Field> {
        self.shape.fields.iter().find(|field| field.access.key)
    }

    /// The operation of this name, among those on one row.
    pub fn other(&self, name: OperationName) -> Option<&'static Op> {
        self.others.iter().copied().find(|op| name.is_of(op))
    }

    /// The fields that responses contain.
    pub fn shown(&self) -> impl Iterator<Item = &'static Field> {
        self.shape.fields.iter().filter(|field| field.access.shown)
    }

    /// The field that identifies a row to people: the first of name, label, login name, key, URI and location that the
    /// resource has; else its key.
    pub fn title(&self) -> Option<&'static Field> {
        const TITLES: [&str; 6] = ["name", "label", "loginName", "key", "uri", "location"];
        let named = TITLES.iter().find_map(|title| self.shown().find(|field| field.wire() == *title));
        named.or_else(|| self.key())
    }

    /// The columns of its list: the title, then four others, the most informative ones first.
    pub fn columns(&self) -> Vec<&'static Field> {
        let title = self.title();
        let is_title = |field: &&Field| title.is_some_and(|title| title.wire() == field.wire());
        let mut others: Vec<(usize, &'static Field)> = self
            .shown()
            .filter(|field| !is_title(field) && !field.access.key && !field.is_token())
            .filter_map(|field| Some((rank(field)?, field)))
            .collect();
        others.sort_by_key(|(rank, _)| *rank);
        title.into_iter().chain(others.into_iter().take(4).map(|(_, field)| field)).collect()
    }

    /// The resource that an id in this field refers to.
    pub fn referenced(&self, field: &Field) -> Option<&'static Resource> {
        match self.shape.parents.iter().find(|parent| parent.field.wire() == field.wire()) {
            Some(parent) => of_shape(parent.shape),
            None if matches!(field.kind, Kind::Id) => referenced(field.wire()),
            None => None,
        }
    }
}

/// A row's key.
pub fn key_of(resource: &Resource, row: &Value) -> String {
    resource.key().map_or_else(String::new, |field| plain(row.get(field.wire()).unwrap_or(&Value::Null)))
}

/// The display name of a row.
pub fn title_of(resource: &Resource, row: &Value) -> String {
    let own = (resource.presentation.title)(row);
    own.unwrap_or_else(|| {
        resource
            .title()
            .map_or_else(String::new, |field| plain(row.get(field.wire()).unwrap_or(&Value::Null)))
    })
}

/// The rank of a field as a column: choices, short texts, references, booleans, times. `None` if it is no column.
fn rank(field: &Field) -> Option<usize> {
    if field.access.sealing == Sealing::Secret {
        return None;
    }
    Some(match field.kind {
        Kind::Choice(_) | Kind::Numbered(_) => 0,
        Kind::Text(rule) if rule.max <= LONGEST_COLUMN => 1,
        Kind::Id => 2,
        Kind::Bool => 3,
        Kind::Int { .. } => 4,
        Kind::Time => 5,
        Kind::Text(_) | Kind::Bytes(_) | Kind::Object(_) | Kind::Ids | Kind::Texts(_) | Kind::Pairs(_) => {
            return None;
        }
    })
}

/// The maximum length of a text that is shown as a column, in characters.
const LONGEST_COLUMN: usize = 320;

/// The unreserved characters of a URI (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A percent-encoded path segment.
pub fn encoded(segment: &str) -> String {
    utf8_percent_encode(segment, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::{find, resources};

    #[test]
    fn every_resource_with_a_list_is_here() {
        crate::resources::fill();
        let names: Vec<&str> = resources().iter().map(|one| one.name).collect();
        for name in ["User", "Group", "ClientApp", "Tenant", "Option", "SignInSession", "CustomAuditTrail"] {
            assert!(names.contains(&name), "{name} is missing in {names:?}");
        }
    }

    #[test]
    fn a_plain_resource_has_a_title_and_columns() {
        crate::resources::fill();
        let tenant = find("Tenant", false).unwrap();
        let columns: Vec<&str> = tenant.columns().iter().map(|field| field.wire()).collect();
        assert_eq!(columns.first(), Some(&"name"));
        assert!(columns.len() > 2 && columns.len() <= 5, "{columns:?}");
        assert!(tenant.create.is_some() && tenant.patch.is_some() && tenant.delete.is_some());
    }

    /// Operations without a page, with the reason, or the page that replaces it.
    const EXCUSED: &[(&str, &str)] = &[
        ("ChangePasswordPublic", "is for who signs in"),
        ("ResetPasswordTokenResponsePublic", "is for who signs in"),
        ("RedeemTemporaryAccessPass", "is for who signs in"),
        ("StartPasskeyRegistration", "is of a browser and its authenticator: sign-in pages offer it"),
        ("FinishPasskeyRegistration", "as above"),
        ("StartPasskeyAuthentication", "as above"),
        ("FinishPasskeyAuthentication", "as above"),
        ("GetUserImage", "its bodies are files: programs send them"),
        ("SetUserImage", "as above"),
        ("GetUserImageContent", "as above"),
        ("CreateCustomAssetByExpander", "as above"),
        ("ImportPasskeyTrust", "as above"),
        ("GetUserByLoginName", "SearchUsers"),
        ("GetAllGroupMembershipFromGroup", "the pages of groups"),
        ("GetAllGroupMembershipFromUser", "the pages of groups"),
        ("GetGroupMetadataByGroupIdEarlier", "GetGroupMetadataByGroupId"),
        ("GetIdpTypeByName", "the list of types"),
        ("GetOptionByTypeAndRefAndName", "the settings"),
        ("GetOptionValueByTypeAndRefAndName", "the settings"),
        ("GetOptionsByTypeAndRef", "the settings"),
        ("GetCustomAssetMimeTypes", "the form of a file refuses others"),
        ("GetEvents", "is for programs"),
        ("GetUserDelta", "is for programs"),
        ("GetGroupDelta", "is for programs"),
        ("GetSignInEvents", "is for programs"),
        ("StreamEvents", "is for programs"),
        ("ReplayEventDeliveries", "is run by deliveries.rs"),
        ("StreamSignInEvents", "is for programs"),
        ("GetAuditTrailConsistencyProof", "is for who keeps checkpoints of their own"),
        ("RefreshPasskeyTrust", "a job does it"),
        ("GetPasskeyTrustStatus", "the page of health tells its failures"),
        ("GetIdentityReplacementQueue", "the list of replacements"),
        ("SetUserStateBatch", "acts on many rows"),
        ("RemovePasswordBatch", "acts on many rows"),
        ("RestorePasswordBatch", "acts on many rows"),
        ("GetOperations", "PasskeyReadiness"),
        ("GetAuditTrailCheckpoint", "the entries' pages, by the browser"),
        ("GetViewTemplateContent", "views begin as a template"),
        ("GetViewTemplateNames", "as above"),
        ("PreviewView", "is run by editor/"),
    ];

    /// Every operation is reachable: by a page, or it has a reason why not.
    #[test]
    fn every_operation_has_a_page() {
        use chancery_resource::{Action, Method};
        crate::resources::fill();
        let mut reached: Vec<&str> = EXCUSED.iter().map(|(name, _)| *name).collect();
        for one in resources() {
            let own = [one.list, one.search, one.read, one.create, one.patch, one.delete];
            reached.extend(own.into_iter().flatten().map(|op| op.name));
            let has_form =
                |op: &&&chancery_resource::Op| crate::pages::act::has_form(op) && op.method != Method::Get;
            reached.extend(one.others.iter().filter(has_form).map(|op| op.name));
            let relates = |op: &&&chancery_resource::Op| matches!(op.action, Action::Relate(..));
            reached.extend(one.others.iter().filter(relates).map(|op| op.name));
            reached.extend(one.of_all.iter().filter(has_form).map(|op| op.name));
            for owned in &one.owned {
                let own = [owned.list, owned.read, owned.create, owned.change, owned.delete];
                reached.extend(own.into_iter().flatten().map(|op| op.name));
                reached.extend(owned.others.iter().map(|op| op.name));
            }
        }
        // custom pages name the operations that they run
        let sources = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
        let mut pages = String::new();
        let mut folders = vec![sources.join("pages"), sources.join("resources")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    pages.push_str(&std::fs::read_to_string(path).unwrap());
                }
            }
        }
        let mut missing = Vec::new();
        for service in [&chancery_userstore::SERVICE, &chancery_management::SERVICE] {
            for op in service.all() {
                // forms use PATCH; lists are filtered by the path parameter
                let is_other_way =
                    matches!(
                        op.action,
                        Action::Replace | Action::ReplaceBatch | Action::CreateBatch | Action::DeleteBatch
                    ) || (op.method == Method::Get && op.reply.is_list() && op.path.matches('{').count() > 0);
                if !is_other_way
                    && !reached.contains(&op.name)
                    && !pages.contains(&format!("\"{}\"", op.name))
                {
                    missing.push(op.name);
                }
            }
        }
        assert!(missing.is_empty(), "{missing:#?}");
        let unknown: Vec<_> = EXCUSED
            .iter()
            .filter(|(name, _)| {
                ![&chancery_userstore::SERVICE, &chancery_management::SERVICE]
                    .iter()
                    .any(|service| service.all().any(|op| op.name == *name))
            })
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
