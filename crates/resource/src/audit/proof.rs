//! Proofs over the audit trail of a call's scope (RFC 6962): the tree's checkpoint, the inclusion of an entry,
//! and the consistency with an earlier tree.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_ledger::{Hash, consistency_proof, inclusion_proof, root};
use chancery_record::Value;
use chancery_store::{Error, Tx, selectable};
use serde_json::{Value as Json, json};

use crate::{
    Answer, Call, JsonForm, Problem, ProblemKind, QueryParameter,
    audit::tree::{Tree, with_nodes},
};

/// The media type of a checkpoint.
pub const NOTE: &str = "text/plain";

/// The answer of [`inclusion`].
pub static INCLUSION: JsonForm = JsonForm { name: "InclusionProof", schema: inclusion_schema };
/// The answer of [`consistency`].
pub static CONSISTENCY: JsonForm = JsonForm { name: "ConsistencyProof", schema: consistency_schema };
/// The query parameters of [`consistency`].
pub const SIZES: &[QueryParameter] = &[
    QueryParameter::number("from", "The size of the earlier tree, in entries. 0 if missing.", 0, i64::MAX),
    QueryParameter::number(
        "to",
        "The size of the later tree, at most that of the newest checkpoint. If missing, it is that of the newest checkpoint.",
        0,
        i64::MAX,
    ),
];

/// Reads the tree of a store. A tree that has nodes but no checkpoint is an error, and not an empty tree.
fn find_tree(tx: &mut Tx<'_>, store: i64) -> Result<Tree, Error> {
    let tree = Tree::load(tx, store)?;
    let node = "SELECT position FROM audit_node WHERE store = ?1 LIMIT 1";
    if tree.checkpoint.is_none() && tx.one(node, &[Value::Int(store)], |_| Ok(()))?.is_some() {
        return Err(Error::Internal(format!("the audit tree of store {store} has nodes and no checkpoint")));
    }
    Ok(tree)
}

/// Answers with the newest checkpoint.
///
/// # Errors
/// Not found: no entry is in the tree yet.
pub fn checkpoint(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let tree = find_tree(tx, call.context.scope.store())?;
    let note = tree.checkpoint.ok_or_else(|| {
        let detail = "No entry of this trail is in its tree yet. It takes about a second.";
        Problem::new(ProblemKind::NotFound, detail)
    })?;
    call.answer.bytes.extend_from_slice(note.as_bytes());
    Ok(Answer { content_type: Some("text/plain; charset=utf-8"), ..Answer::new(call.request.op.status) })
}

selectable! {
    /// The leaf of an entry in the tree of its trail.
    struct LeafOfEntry from "FROM audit_leaf l \
        LEFT JOIN audit_node n ON n.store = l.store AND n.level = 0 AND n.position = l.position \
        WHERE l.store = ?1 AND l.entry = ?2" {
        position: u64 = "l.position",
        /// The position of its node; a pending leaf has none yet.
        node: Option<u64> = "n.position",
    }
}

/// Answers with the proof that the entry of the path is in the newest checkpoint's tree.
///
/// # Errors
/// There is no such entry, or it is not in the tree yet.
pub fn inclusion(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let store = call.context.scope.store();
    let Value::Int(id) = call.request.op.shape.read_key(call.request.parameter(0))? else {
        return Err(Problem::not_found(call.request.op.shape.name));
    };
    let key = [Value::Int(store), Value::Int(id)];
    let size = Tree::load(tx, store)?.size;
    let leaf = tx.one(LeafOfEntry::SELECT, &key, LeafOfEntry::read)?;
    let is_pending = leaf.as_ref().is_some_and(|leaf| leaf.node.is_none());
    let leaf_position = leaf.map(|leaf| leaf.position);
    let Some(position) = leaf_position.filter(|position| *position < size) else {
        let text = "SELECT 1 FROM event_pending WHERE tree = ?1 AND event = ?2 \
             UNION ALL SELECT 1 FROM audit_pending WHERE store = ?1 AND entry = ?2";
        let detail = "The entry is not in the trail's tree yet. It takes about a second.";
        if is_pending || tx.one(text, &key, |_| Ok(()))?.is_some() {
            return Err(Problem::new(ProblemKind::NotFound, detail));
        }
        let text = "SELECT rid FROM audit_entry WHERE store = ?1 AND rid = ?2";
        if tx.one(text, &key, |_| Ok(()))?.is_some() {
            return Err(Error::Internal(format!("the audit tree of store {store} lacks entry {id}")).into());
        }
        return Err(Problem::not_found(call.request.op.shape.name));
    };
    let tree = find_tree(tx, store)?;
    let (leaf, proof) = with_nodes(tx, store, |mut node| {
        Ok((node(0, position)?, inclusion_proof(position, tree.size, &mut node)?))
    })?;
    let proof = proof
        .ok_or_else(|| Error::Internal(format!("the audit tree of store {store} has no leaf {position}")))?;
    let body = json!({
        "id": id,
        "position": position,
        "treeSize": tree.size,
        "leafHash": BASE64_STANDARD.encode(leaf),
        "hashes": encoded(&proof),
        "checkpoint": tree.checkpoint,
    });
    Ok(answer(call, &body))
}

/// Answers with the proof that the tree of size `to` begins with the tree of size `from`.
///
/// # Errors
/// Sizes that are malformed, or larger than the tree.
pub fn consistency(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let store = call.context.scope.store();
    let tree = find_tree(tx, store)?;
    let size = |name, default: u64| {
        let wrong = |_| Problem::invalid(format!("{name} is the size of a tree: a number from 0 up."));
        call.request.query(name).map_or(Ok(default), |text| text.parse().map_err(wrong))
    };
    let (from, to) = (size("from", 0)?, size("to", tree.size)?);
    if from > to || to > tree.size {
        let detail = format!("The tree has {} entries: from is at most to, and to at most that.", tree.size);
        return Err(Problem::invalid(detail));
    }
    let (from_root, to_root, proof) = with_nodes(tx, store, |mut node| {
        Ok((root(from, &mut node)?, root(to, &mut node)?, consistency_proof(from, to, &mut node)?))
    })?;
    let proof = proof.ok_or_else(|| {
        Error::Internal(format!("the audit tree of store {store} proves nothing from {from} to {to}"))
    })?;
    let body = json!({
        "from": from,
        "to": to,
        "fromRootHash": BASE64_STANDARD.encode(from_root),
        "toRootHash": BASE64_STANDARD.encode(to_root),
        "hashes": encoded(&proof),
    });
    Ok(answer(call, &body))
}

fn encoded(hashes: &[Hash]) -> Vec<String> {
    hashes.iter().map(|hash| BASE64_STANDARD.encode(hash)).collect()
}

fn answer(call: &mut Call, body: &Json) -> Answer {
    call.answer.bytes.extend_from_slice(body.to_string().as_bytes());
    Answer::new(call.request.op.status)
}

fn number(about: &str) -> Json {
    json!({ "type": "integer", "minimum": 0, "description": about })
}

fn hash(about: &str) -> Json {
    json!({ "type": "string", "contentEncoding": "base64", "description": about })
}

fn hashes(about: &str) -> Json {
    json!({ "type": "array", "description": about, "items": hash("A SHA-256 hash.") })
}

fn inclusion_schema() -> Json {
    json!({
        "type": "object",
        "description": "The inclusion proof of an entry in the tree of a checkpoint (RFC 6962, section 2.1.1).",
        "required": ["id", "position", "treeSize", "leafHash", "hashes", "checkpoint"],
        "properties": {
            "id": number("The entry's number."),
            "position": number("The index of the leaf in the tree, from 0."),
            "treeSize": number("The number of entries in the tree."),
            "leafHash": hash("The leaf hash of the entry: SHA-256 over a zero byte and the canonical JSON of the members that its signature covers, with signature and signaturePublicKeyInfo, and with person if primaryKey does not begin with it."),
            "hashes": hashes("The proof, starting with the hash next to the leaf."),
            "checkpoint": { "type": "string", "description": "The signed checkpoint of the tree (C2SP)." },
        },
    })
}

fn consistency_schema() -> Json {
    json!({
        "type": "object",
        "description": "The consistency proof: it proves that a tree begins with an earlier one (RFC 6962, section 2.1.2).",
        "required": ["from", "to", "fromRootHash", "toRootHash", "hashes"],
        "properties": {
            "from": number("The size of the earlier tree."),
            "to": number("The size of the later tree."),
            "fromRootHash": hash("The root of the earlier tree."),
            "toRootHash": hash("The root of the later tree."),
            "hashes": hashes("The proof; empty from size 0 and between equal sizes."),
        },
    })
}
