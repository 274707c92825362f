//! Documents: each is the desired state of one row.

use std::fmt;

use serde_json::{Map, Value};

/// The most documents of one set.
const MAX_DOCUMENTS: usize = 100_000;

/// The desired state of one row. Members that it does not have are left unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its kind, as the interface calls it.
    pub kind: String,
    /// Its members, with names in the place of ids.
    pub members: Map<String, Value>,
}

impl Document {
    /// The document as JSON.
    pub fn to_json(&self) -> Value {
        serde_json::json!({ "kind": self.kind, "members": self.members })
    }
}

/// A mistake, with its position in the documents: a JSON Pointer (RFC 6901) that begins with the document's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The document's number, from 0; none where it concerns no document.
    pub document: Option<usize>,
    /// The pointer in the document.
    pub pointer: String,
    /// The mistake.
    pub detail: String,
}

impl Problem {
    /// A mistake in a member of a document.
    pub fn member(document: usize, member: &str, detail: impl Into<String>) -> Self {
        let member = member.replace('~', "~0").replace('/', "~1");
        Self { document: Some(document), pointer: format!("/members/{member}"), detail: detail.into() }
    }

    /// A mistake at another position in a document.
    pub fn at(document: usize, pointer: &str, detail: impl Into<String>) -> Self {
        Self { document: Some(document), pointer: pointer.to_owned(), detail: detail.into() }
    }

    /// A mistake that concerns no document.
    pub fn general(detail: impl Into<String>) -> Self {
        Self { document: None, pointer: String::new(), detail: detail.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.document {
            Some(number) => write!(formatter, "/{number}{}: {}", self.pointer, self.detail),
            None => formatter.write_str(&self.detail),
        }
    }
}

/// Reads documents: one, or an array of them. `first` is the number of the first one.
///
/// # Errors
/// The invalid documents, each with its pointer.
pub fn read_documents(json: Value, first: usize) -> Result<Vec<Document>, Vec<Problem>> {
    let items = match json {
        Value::Array(items) => items,
        one => vec![one],
    };
    if items.len() > MAX_DOCUMENTS {
        return Err(vec![Problem::general(format!("a set has at most {MAX_DOCUMENTS} documents"))]);
    }
    let (mut documents, mut problems) = (Vec::with_capacity(items.len()), Vec::new());
    for (index, item) in items.into_iter().enumerate() {
        match document(item) {
            Ok(document) => documents.push(document),
            Err((pointer, detail)) => problems.push(Problem::at(first + index, pointer, detail)),
        }
    }
    if problems.is_empty() { Ok(documents) } else { Err(problems) }
}

fn document(item: Value) -> Result<Document, (&'static str, &'static str)> {
    let Value::Object(mut parts) = item else {
        return Err(("", "must be an object with kind and members"));
    };
    let (kind, members) = (parts.remove("kind"), parts.remove("members"));
    if !parts.is_empty() {
        return Err(("", "must have no members but kind and members"));
    }
    match (kind, members) {
        (Some(Value::String(kind)), Some(Value::Object(members))) => Ok(Document { kind, members }),
        (Some(Value::String(_)), _) => Err(("/members", "must be an object")),
        _ => Err(("/kind", "must be the name of a resource, such as Tenant")),
    }
}
