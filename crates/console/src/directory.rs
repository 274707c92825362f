//! What can be administered: every resource with its operations, read from the lists that the interface consists of.

use std::sync::LazyLock;

use chancery_record::{Field, Kind, Sealing};
use chancery_resource::{Action, Method, Op, Service, Shape};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// A resource as pages see it.
pub struct Resource {
    /// Its name in addresses, which is that of its paths.
    pub name: &'static str,
    /// Its shape.
    pub shape: &'static Shape,
    /// Whether it is in a user store.
    pub is_of_store: bool,
    /// Lists it.
    pub list: Option<&'static Op>,
    /// Finds it by how names begin, better than its list does.
    pub search: Option<&'static Op>,
    /// Reads one.
    pub read: Option<&'static Op>,
    /// Creates one.
    pub create: Option<&'static Op>,
    /// Changes one.
    pub patch: Option<&'static Op>,
    /// Deletes one.
    pub delete: Option<&'static Op>,
    /// All other operations about one of it, in the order of the interface.
    pub others: Vec<&'static Op>,
}

/// All resources with a list, in the order of the interface.
static RESOURCES: LazyLock<Vec<Resource>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for service in [&chancery_userstore::SERVICE, &chancery_management::SERVICE] {
        add(&mut all, service);
    }
    all.retain(|one: &Resource| one.list.is_some());
    all
});

fn add(all: &mut Vec<Resource>, service: &'static Service) {
    let is_of_store = service.base.contains("{userstore}");
    for op in service.all() {
        let path = op.path.strip_prefix("/administration").unwrap_or(op.path);
        let mut segments = path.trim_start_matches('/').split('/');
        let Some(name) = segments.next().filter(|name| !name.contains('{')) else { continue };
        let rest: Vec<&str> = segments.collect();
        let at = all.iter().position(|one| one.name == name && one.is_of_store == is_of_store);
        let at = at.unwrap_or_else(|| {
            let shape = op.shape;
            all.push(Resource {
                name,
                shape,
                is_of_store,
                list: None,
                search: None,
                read: None,
                create: None,
                patch: None,
                delete: None,
                others: Vec::new(),
            });
            all.len() - 1
        });
        let Some(one) = all.get_mut(at) else { continue };
        let place = match (op.method, rest.as_slice()) {
            (Method::Get, []) => &mut one.list,
            (Method::Post, []) if matches!(op.action, Action::Create | Action::Custom(_)) => &mut one.create,
            (Method::Get, ["search"]) => &mut one.search,
            (Method::Get, [key]) if key.starts_with('{') => &mut one.read,
            (Method::Patch, [key]) if key.starts_with('{') => &mut one.patch,
            (Method::Delete, [key]) if key.starts_with('{') => &mut one.delete,
            (_, [key, ..]) if key.starts_with('{') => {
                one.others.push(op);
                continue;
            }
            _ => continue,
        };
        place.get_or_insert(op);
        if op.method == Method::Get && rest.is_empty() {
            one.shape = op.shape;
        }
    }
}

/// The resources.
pub fn resources() -> &'static [Resource] {
    &RESOURCES
}

/// The resource of this name, in user stores or beside them.
pub fn find(name: &str, is_of_store: bool) -> Option<&'static Resource> {
    RESOURCES.iter().find(|one| one.name == name && one.is_of_store == is_of_store)
}

/// The resource whose rows are of this shape.
pub fn of_shape(shape: &Shape) -> Option<&'static Resource> {
    RESOURCES.iter().find(|one| std::ptr::eq(one.shape, shape))
}

impl Resource {
    /// Its list's address. In a user store the address begins with the store's.
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

    /// The fields that answers show.
    pub fn shown(&self) -> impl Iterator<Item = &'static Field> {
        self.shape.fields.iter().filter(|field| field.access.shown)
    }

    /// What one of it is known by: the first of name, label, login name, key, URI and location that it has; else its key.
    pub fn title(&self) -> Option<&'static Field> {
        const TITLES: [&str; 6] = ["name", "label", "loginName", "key", "uri", "location"];
        let named = TITLES.iter().find_map(|title| self.shown().find(|field| field.wire() == *title));
        named.or_else(|| self.key())
    }

    /// The columns of its list: the title, then four, those first that tell most at a glance.
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

    /// The resource that an id in this field names.
    pub fn referenced(&self, field: &Field) -> Option<&'static Resource> {
        let parent = self.shape.parents.iter().find(|parent| parent.field.wire() == field.wire())?;
        of_shape(parent.shape)
    }
}

/// How soon a field is a column: choices, short texts, references, switches, times. Others are none.
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
        Kind::Text(_) | Kind::Bytes(_) | Kind::Object(_) | Kind::Ids => return None,
    })
}

/// The longest text that is a column, in characters.
const LONGEST_COLUMN: usize = 320;

/// What stands for itself in an address (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A segment of an address.
pub fn encoded(segment: &str) -> String {
    utf8_percent_encode(segment, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::{find, resources};

    #[test]
    fn every_resource_with_a_list_is_here() {
        let names: Vec<&str> = resources().iter().map(|one| one.name).collect();
        for name in ["User", "Group", "ClientApp", "Tenant", "Option", "SignInSession", "CustomAuditTrail"] {
            assert!(names.contains(&name), "{name} is missing in {names:?}");
        }
    }

    #[test]
    fn a_plain_resource_has_a_title_and_columns() {
        let tenant = find("Tenant", false).unwrap();
        let columns: Vec<&str> = tenant.columns().iter().map(|field| field.wire()).collect();
        assert_eq!(columns.first(), Some(&"name"));
        assert!(columns.len() > 2 && columns.len() <= 5, "{columns:?}");
        assert!(tenant.create.is_some() && tenant.patch.is_some() && tenant.delete.is_some());
    }
}
