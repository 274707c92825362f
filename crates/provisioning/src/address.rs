//! Routing: the endpoint of a path and a method (RFC 7644, section 3.2).

use chancery_resource::{Problem, ProblemKind};
use http::Method;
use percent_encoding::percent_decode_str;

/// The prefix of all paths.
pub const BASE: &str = "/api/scim/v2/";

/// An endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A discovery document, or one item of it.
    Document(Document, Option<String>),
    /// Resources of a type.
    Resources(Type, Verb),
    /// Resources of all types, selected by a filter.
    SearchAll,
    /// Bulk operations.
    Bulk,
    /// `/Me`, the user of the caller.
    Me(MeMethod),
}

/// A method of `/Me`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeMethod {
    /// Read it.
    Read,
    /// Replace it.
    Replace,
    /// Change it.
    Patch,
}

/// A discovery document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// `/ServiceProviderConfig`.
    Config,
    /// The schemas.
    Schemas,
    /// `/ResourceTypes`.
    Types,
}

/// A type of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Users.
    Users,
    /// Groups.
    Groups,
}

/// An operation on resources; with an id on one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Lists resources.
    List,
    /// Lists resources, with the parameters in the body.
    Search,
    /// Creates one.
    Create,
    /// Reads one.
    Read(String),
    /// Replaces one.
    Replace(String),
    /// Changes one.
    Patch(String),
    /// Deletes one.
    Delete(String),
}

/// Splits a path into the instance and the segments below it, decoded.
///
/// # Errors
/// A segment cannot be decoded.
pub fn split(path: &str) -> Result<(String, Vec<String>), Problem> {
    let rest = path.strip_prefix(BASE).unwrap_or_default();
    let decoded = |segment: &str| {
        let text = percent_decode_str(segment).decode_utf8().map(std::borrow::Cow::into_owned);
        text.map_err(|_| Problem::invalid("A part of the path is not UTF-8."))
    };
    let mut segments = rest.split('/').map(decoded).collect::<Result<Vec<_>, _>>()?;
    if segments.len() > 1 && segments.last().is_some_and(String::is_empty) {
        segments.pop();
    }
    let instance = segments.remove(0);
    Ok((instance, segments))
}

/// The endpoint of a method at a path below the instance.
///
/// # Errors
/// No such path, or no such method on it.
pub fn read(segments: &[String], method: &Method) -> Result<Endpoint, Problem> {
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let document = |document, name: Option<&str>| Endpoint::Document(document, name.map(str::to_owned));
    match segments.as_slice() {
        ["ServiceProviderConfig"] => only(method, "GET", document(Document::Config, None)),
        ["Schemas"] => only(method, "GET", document(Document::Schemas, None)),
        ["Schemas", urn] => only(method, "GET", document(Document::Schemas, Some(urn))),
        ["ResourceTypes"] => only(method, "GET", document(Document::Types, None)),
        ["ResourceTypes", name] => only(method, "GET", document(Document::Types, Some(name))),
        [".search"] => only(method, "POST", Endpoint::SearchAll),
        ["Bulk"] => only(method, "POST", Endpoint::Bulk),
        ["Me"] => match method.as_str() {
            "GET" => Ok(Endpoint::Me(MeMethod::Read)),
            "PUT" => Ok(Endpoint::Me(MeMethod::Replace)),
            "PATCH" => Ok(Endpoint::Me(MeMethod::Patch)),
            _ => Err(no_method("GET, PUT, PATCH")),
        },
        [of, rest @ ..] => {
            let of = match *of {
                "Users" => Type::Users,
                "Groups" => Type::Groups,
                _ => return Err(no_such_path()),
            };
            resources(rest, method).map(|verb| Endpoint::Resources(of, verb))
        }
        [] => Err(no_such_path()),
    }
}

fn resources(rest: &[&str], method: &Method) -> Result<Verb, Problem> {
    match rest {
        [] if *method == Method::GET => Ok(Verb::List),
        [] if *method == Method::POST => Ok(Verb::Create),
        [] => Err(no_method("GET, POST")),
        [".search"] => only(method, "POST", Verb::Search),
        [id] => {
            let id = (*id).to_owned();
            Ok(match method.as_str() {
                "GET" => Verb::Read(id),
                "PUT" => Verb::Replace(id),
                "PATCH" => Verb::Patch(id),
                "DELETE" => Verb::Delete(id),
                _ => return Err(no_method("GET, PUT, PATCH, DELETE")),
            })
        }
        _ => Err(no_such_path()),
    }
}

fn only<T>(method: &Method, allowed: &'static str, endpoint: T) -> Result<T, Problem> {
    if method.as_str() == allowed { Ok(endpoint) } else { Err(no_method(allowed)) }
}

fn no_method(allowed: &'static str) -> Problem {
    let detail = format!("This path has {allowed} alone.");
    Problem::new(ProblemKind::MethodNotAllowed, detail).with_header("allow", allowed)
}

fn no_such_path() -> Problem {
    Problem::new(ProblemKind::NoSuchRoute, "Nothing is at this path. /ResourceTypes lists what is.")
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::{Document, Endpoint, Type, Verb, read, split};

    fn endpoint(method: &str, path: &str) -> Result<Endpoint, u16> {
        let (_, segments) = split(&format!("/api/scim/v2/one/{path}")).unwrap();
        read(&segments, &Method::from_bytes(method.as_bytes()).unwrap()).map_err(|problem| problem.status())
    }

    #[test]
    fn paths_are_routed_to_endpoints() {
        assert_eq!(endpoint("GET", "Users"), Ok(Endpoint::Resources(Type::Users, Verb::List)));
        assert_eq!(endpoint("GET", "Users/"), Ok(Endpoint::Resources(Type::Users, Verb::List)));
        assert_eq!(
            endpoint("PATCH", "Groups/a%2Fb"),
            Ok(Endpoint::Resources(Type::Groups, Verb::Patch("a/b".into())))
        );
        assert_eq!(endpoint("POST", "Users/.search"), Ok(Endpoint::Resources(Type::Users, Verb::Search)));
        assert_eq!(endpoint("POST", ".search"), Ok(Endpoint::SearchAll));
        assert_eq!(endpoint("POST", "Bulk"), Ok(Endpoint::Bulk));
        let urn = "urn:ietf:params:scim:schemas:core:2.0:User";
        assert_eq!(
            endpoint("GET", &format!("Schemas/{urn}")),
            Ok(Endpoint::Document(Document::Schemas, Some(urn.into())))
        );
    }

    #[test]
    fn unknown_paths_and_methods_are_rejected() {
        for path in ["", "users", "Users/1/2", "Roles", "Schemas/a/b"] {
            assert_eq!(endpoint("GET", path), Err(404), "{path}");
        }
        for (method, path) in [
            ("DELETE", "Users"),
            ("POST", "Users/1"),
            ("PUT", "ServiceProviderConfig"),
            ("GET", "Bulk"),
            ("GET", ".search"),
        ] {
            assert_eq!(endpoint(method, path), Err(405), "{method} {path}");
        }
    }
}
