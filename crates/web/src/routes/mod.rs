//! Routing: from a path to its operations.

pub mod deprecation;
pub mod system_route;

use std::collections::BTreeMap;

use chancery_resource::{Method, Op, Problem, ProblemKind, Service};
use http::Method as HttpMethod;
use matchit::{InsertError, Router};
use percent_encoding::percent_decode_str;

use self::system_route::{IssuerKind, SystemRoute};

/// The target of a path.
pub enum Target {
    /// Operations of a service, one for each method.
    Operations(Vec<Entry>),
    /// A server endpoint, of the installation or of a tenant.
    System(SystemRoute, IssuerKind),
}

/// An operation at a path.
#[derive(Clone, Copy)]
pub struct Entry {
    pub op: &'static Op,
    /// The operation's index in the metrics.
    pub number: usize,
    /// The base of its path.
    pub base: &'static str,
    /// Whether access tokens for the user store service alone are accepted.
    pub is_user_store: bool,
}

/// All paths.
pub struct Routes(Router<Target>);

impl Routes {
    /// Builds the routes from the services' operations.
    ///
    /// # Errors
    /// Two ambiguous paths.
    pub fn new(services: &[&'static Service]) -> Result<Self, InsertError> {
        let mut operations: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        let mut number = 0;
        for service in services {
            let is_user_store = service.base.contains("{userstore}");
            for op in service.all() {
                let mut path = format!("{}{}", service.base, op.path);
                if op.shape.is_located() {
                    // a location spans the rest of the path
                    path = path.replace("/{id}", "/{*id}");
                }
                let entry = Entry { op, number, base: service.base, is_user_store };
                number += 1;
                operations.entry(path).or_default().push(entry);
            }
        }
        let mut router = Router::new();
        for (path, entries) in operations {
            router.insert(path, Target::Operations(entries))?;
        }
        for route in SystemRoute::all() {
            let installation = [(route.path(), IssuerKind::Installation)].into_iter();
            let tenants = route.tenant_paths().iter().map(|path| (*path, IssuerKind::Tenant));
            for (path, kind) in installation.chain(tenants) {
                router.insert(path, Target::System(route, kind))?;
                if route.is_typed() {
                    router.insert(format!("{path}/"), Target::System(route, kind))?;
                }
            }
        }
        Ok(Self(router))
    }

    /// The target of a path, and its parameters if they can be decoded. Each is one segment, whatever it
    /// contains.
    pub fn find(&self, path: &str) -> Result<(&Target, Result<Vec<String>, Problem>), Problem> {
        let found = self.0.at(path).map_err(|_| {
            Problem::new(ProblemKind::NoSuchRoute, "Nothing is at this path. /openapi lists what is.")
        })?;
        let decoded = found.params.iter().map(|(_, value)| {
            percent_decode_str(value).decode_utf8().map(std::borrow::Cow::into_owned).map_err(|_| {
                Problem::invalid("A segment of the path is not UTF-8 when its %-codes are decoded.")
            })
        });
        let decoded = decoded.collect::<Result<Vec<String>, _>>().and_then(|decoded| {
            if decoded.iter().any(|segment| segment.contains('\0')) {
                return Err(Problem::invalid("A segment of the path contains a NUL character."));
            }
            Ok(decoded)
        });
        Ok((found.value, decoded))
    }
}

/// The operation for a method among those at a path.
pub fn choose(entries: &[Entry], method: &HttpMethod) -> Result<Entry, Problem> {
    let method_name = if method == HttpMethod::HEAD { "GET" } else { method.as_str() };
    // HEAD must not call an operation that writes
    let fits = |entry: &&Entry| {
        entry.op.method.name() == method_name && !(method == HttpMethod::HEAD && entry.op.writes())
    };
    let found = entries.iter().find(fits);
    found.copied().ok_or_else(|| {
        let mut allowed: Vec<&str> = entries.iter().map(|entry| entry.op.method.name()).collect();
        if entries.iter().any(|entry| entry.op.method == Method::Get && !entry.op.writes()) {
            allowed.push("HEAD");
        }
        not_allowed(&allowed.join(", "))
    })
}

/// The problem of a method that the path does not support.
pub fn not_allowed(allowed: &str) -> Problem {
    Problem::new(ProblemKind::MethodNotAllowed, format!("This path has {allowed}."))
        .with_header("allow", allowed)
}
