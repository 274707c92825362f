//! What a path and a method ask for (RFC 7644, section 3.2).

use chancery_resource::{Problem, ProblemKind};
use http::Method;
use percent_encoding::percent_decode_str;

/// The beginning of all paths.
pub const BASE: &str = "/api/scim/v2/";

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A document, or one of many.
    Document(Document, Option<String>),
    /// Resources of a type.
    Resources(Type, Verb),
    /// Resources of all types, by a filter.
    SearchAll,
    /// Many operations.
    Bulk,
    /// The person who calls.
    Me(Own),
}

/// What people do to the user whom they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// Read it.
    Read,
    /// Replace it.
    Replace,
    /// Change it.
    Patch,
}

/// A document by which clients learn what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// What the server can do.
    Config,
    /// The schemas.
    Schemas,
    /// The types of resources.
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

/// What is done to resources; with an id to one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Lists some.
    List,
    /// Lists some, as the body says.
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

/// The instance that a path names, and the segments below it, decoded.
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

/// What a method asks for at a path below the instance.
///
/// # Errors
/// There is no such path; it has no such method.
pub fn read(segments: &[String], method: &Method) -> Result<Asked, Problem> {
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let document = |document, name: Option<&str>| Asked::Document(document, name.map(str::to_owned));
    match segments.as_slice() {
        ["ServiceProviderConfig"] => only(method, "GET", document(Document::Config, None)),
        ["Schemas"] => only(method, "GET", document(Document::Schemas, None)),
        ["Schemas", urn] => only(method, "GET", document(Document::Schemas, Some(urn))),
        ["ResourceTypes"] => only(method, "GET", document(Document::Types, None)),
        ["ResourceTypes", name] => only(method, "GET", document(Document::Types, Some(name))),
        [".search"] => only(method, "POST", Asked::SearchAll),
        ["Bulk"] => only(method, "POST", Asked::Bulk),
        ["Me"] => match method.as_str() {
            "GET" => Ok(Asked::Me(Own::Read)),
            "PUT" => Ok(Asked::Me(Own::Replace)),
            "PATCH" => Ok(Asked::Me(Own::Patch)),
            _ => Err(no_method("GET, PUT, PATCH")),
        },
        [of, rest @ ..] => {
            let of = match *of {
                "Users" => Type::Users,
                "Groups" => Type::Groups,
                _ => return Err(nowhere()),
            };
            resources(rest, method).map(|verb| Asked::Resources(of, verb))
        }
        [] => Err(nowhere()),
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
        _ => Err(nowhere()),
    }
}

fn only<T>(method: &Method, allowed: &'static str, asked: T) -> Result<T, Problem> {
    if method.as_str() == allowed { Ok(asked) } else { Err(no_method(allowed)) }
}

fn no_method(allowed: &'static str) -> Problem {
    let detail = format!("This path has {allowed} alone.");
    Problem::new(ProblemKind::MethodNotAllowed, detail).with_header("allow", allowed)
}

fn nowhere() -> Problem {
    Problem::new(ProblemKind::NoSuchRoute, "Nothing is at this path. /ResourceTypes lists what is.")
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::{Asked, Document, Type, Verb, read, split};

    fn asked(method: &str, path: &str) -> Result<Asked, u16> {
        let (_, segments) = split(&format!("/api/scim/v2/one/{path}")).unwrap();
        read(&segments, &Method::from_bytes(method.as_bytes()).unwrap()).map_err(|problem| problem.status())
    }

    #[test]
    fn paths_name_what_is_there() {
        assert_eq!(asked("GET", "Users"), Ok(Asked::Resources(Type::Users, Verb::List)));
        assert_eq!(asked("GET", "Users/"), Ok(Asked::Resources(Type::Users, Verb::List)));
        assert_eq!(
            asked("PATCH", "Groups/a%2Fb"),
            Ok(Asked::Resources(Type::Groups, Verb::Patch("a/b".into())))
        );
        assert_eq!(asked("POST", "Users/.search"), Ok(Asked::Resources(Type::Users, Verb::Search)));
        assert_eq!(asked("POST", ".search"), Ok(Asked::SearchAll));
        assert_eq!(asked("POST", "Bulk"), Ok(Asked::Bulk));
        let urn = "urn:ietf:params:scim:schemas:core:2.0:User";
        assert_eq!(
            asked("GET", &format!("Schemas/{urn}")),
            Ok(Asked::Document(Document::Schemas, Some(urn.into())))
        );
    }

    #[test]
    fn what_is_not_there_is_refused() {
        for path in ["", "users", "Users/1/2", "Roles", "Schemas/a/b"] {
            assert_eq!(asked("GET", path), Err(404), "{path}");
        }
        for (method, path) in [
            ("DELETE", "Users"),
            ("POST", "Users/1"),
            ("PUT", "ServiceProviderConfig"),
            ("GET", "Bulk"),
            ("GET", ".search"),
        ] {
            assert_eq!(asked(method, path), Err(405), "{method} {path}");
        }
    }
}
