//! Creation of tokens, and the bounds of their lifetime.

use std::{collections::HashMap, net::IpAddr};

use chancery_record::{Bytes, FieldOf, FieldType, ShortText, Timestamp, Value};
use chancery_resource::{
    Problem, ProblemKind, ProposedRow, StoreError, Tx, Violation, Writer, random, selectable,
};
use chancery_scim::{digest_of, token_of};
use uuid::Uuid;

use super::{ScimToken, ScimTokenId};

/// The maximum number of tokens of a store.
const MAX_TOKENS: usize = 100;
/// The default lifetime of a token, in ms.
const YEAR: i64 = 365 * 24 * 3600 * 1000;
/// The number of leading characters of a token that are stored as its hint.
const HINT: usize = 12;

/// Whether a text is an address, or a network in CIDR notation.
pub fn is_network(text: &str) -> bool {
    let (address, length) = text.split_once('/').map_or((text, None), |(one, two)| (one, Some(two)));
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    length.is_none_or(|length| length.parse::<u32>().is_ok_and(|length| length <= bits))
}

/// Creates new tokens, and validates the ends of tokens.
pub fn create_tokens(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let mut violations = Vec::new();
    let now = writer.context.now;
    for (index, row) in rows.iter_mut().enumerate() {
        let expires_on = row.get(ScimToken::EXPIRES_ON)?.unwrap_or(Timestamp(now.0 + YEAR));
        let was = row.was.map(|was| was.get(ScimToken::EXPIRES_ON)).transpose()?.flatten();
        if expires_on.0 > now.0 + 2 * YEAR && was != Some(expires_on) {
            violations.push(wrong(index, ScimToken::EXPIRES_ON, "is more than two years from now"));
        }
        row.set(ScimToken::EXPIRES_ON, Some(expires_on))?;
        row.set(ScimToken::TOKEN, None)?;
    }
    let new = rows.iter().filter(|row| row.was.is_none()).count();
    if new == 0 {
        return Ok(violations);
    }
    let lineages = read(tx, writer.context.scope.store())?;
    if lineages.len() + new > MAX_TOKENS {
        let detail = format!("would be more than the {MAX_TOKENS} tokens that a user store has");
        let field = ScimToken::NAME.field();
        violations.push(Violation { row: 0, kind: ProblemKind::Conflict, field, detail });
    }
    for (index, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.was.is_none()) {
        let own = row.get(ScimToken::ID)?.0;
        let lineage = match row.get(ScimToken::SUCCESSOR_OF)? {
            None => own,
            Some(ScimTokenId(before)) => lineages.get(&before).copied().unwrap_or_else(|| {
                violations.push(wrong(index, ScimToken::SUCCESSOR_OF, "names no ScimToken"));
                own
            }),
        };
        row.set(ScimToken::LINEAGE, Some(lineage))?;
        let token = token_of(random());
        let hint: String = token.chars().take(HINT).collect();
        row.set(ScimToken::HINT, ShortText::new(hint).map_err(StoreError::Internal)?)?;
        row.set(ScimToken::DIGEST, Some(Bytes(digest_of(&writer.context.app.master, &token))))?;
        ScimToken::TOKEN.field().set(row.values, token.into());
    }
    Ok(violations)
}

selectable! {
    /// A token with its lineage.
    struct LineageOfToken from "FROM scim_token WHERE store = ?1" {
        token: Uuid = "id",
        lineage: Uuid = "lineage",
    }
}

/// The lineages of a store's tokens.
fn read(tx: &mut Tx<'_>, store: i64) -> Result<HashMap<Uuid, Uuid>, StoreError> {
    let mut lineages = HashMap::new();
    tx.query(LineageOfToken::SELECT, &[Value::Int(store)], |row| {
        let LineageOfToken { token, lineage } = LineageOfToken::read(row)?;
        lineages.insert(token, lineage);
        Ok(())
    })?;
    Ok(lineages)
}

fn wrong<T: FieldType>(row: usize, field: FieldOf<ScimToken, T>, detail: &str) -> Violation {
    let kind = ProblemKind::InvalidRequest;
    Violation { row, kind, field: field.field(), detail: detail.to_owned() }
}
