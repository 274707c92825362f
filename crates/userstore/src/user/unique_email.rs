//! Unique e-mail addresses, where the store's options require them: unique as addresses, and as the names that users
//! sign in with. The address of a user in the deletion quarantine stays taken.

use chancery_resource::settings::UserStoreOption;
use std::collections::{HashMap, HashSet};

use chancery_record::{Field, Value, fold};
use chancery_resource::{
    Context, LIST, Problem, ProblemKind, ProposedRow, Sql, StateTable, Tx, Violation, Writer, selectable,
};

use super::User;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Member {
    Login,
    Email,
}

impl Member {
    const ALL: [Self; 2] = [Self::Login, Self::Email];

    const fn field(self) -> &'static Field {
        match self {
            Self::Login => User::LOGIN_NAME.field(),
            Self::Email => User::EMAIL_ADDRESS.field(),
        }
    }

    /// The member's value in a row, folded.
    fn of(self, values: &[Value]) -> Option<String> {
        match self.field().value(values) {
            Value::Text(text) => Some(fold(text)),
            _ => None,
        }
    }
}

/// A new value of a row.
struct Claim {
    row: usize,
    member: Member,
    key: String,
}

/// The members that must be unique: addresses and, where users sign in by address, an address also among login
/// names. An index enforces unique login names.
#[derive(Clone, Copy)]
struct Rule {
    signs_in: bool,
}

impl Rule {
    const fn clash(self, one: Member, other: Member) -> bool {
        match (one, other) {
            (Member::Email, Member::Email) => true,
            (Member::Login, Member::Login) => false,
            _ => self.signs_in,
        }
    }
}

/// Reports users with a new address or login name that is another's address, or with a new address that is
/// another's login name, as far as the store's options forbid it.
pub fn find_taken(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    end_reset_tokens(tx, rows)?;
    find_taken_by(writer.context, tx, rows)
}

/// The same, for a change by the user.
pub fn find_taken_by(
    context: &Context,
    tx: &mut Tx<'_>,
    rows: &[ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let options = &context.scope.of_store()?.options;
    let rule = Rule { signs_in: options.get(UserStoreOption::LOGIN_BY_EMAIL_ENABLED) };
    if !rule.signs_in && !options.get(UserStoreOption::EMAIL_MUST_BE_UNIQUE) {
        return Ok(Vec::new());
    }
    let (claims, unchanged) = claims(rule, rows);
    let own: HashSet<i64> = rows.iter().filter_map(|row| row.was).map(|was| was.rid).collect();
    let mut conflicting = conflicts_in_batch(rule, &claims, unchanged);
    for (first, chunk) in claims.chunks(LIST).enumerate() {
        let mut stored_conflicts = HashSet::new();
        find_stored(context, tx, chunk, &own, |found, key| {
            let clashes = |claim: &Claim| claim.key == key && rule.clash(claim.member, found);
            let indices = chunk.iter().enumerate().filter(|(_, claim)| clashes(claim));
            stored_conflicts.extend(indices.map(|(index, _)| first * LIST + index));
        })?;
        conflicting.extend(stored_conflicts);
    }
    let violations = claims.iter().enumerate().filter(|(index, _)| conflicting.contains(index));
    let violations = violations.map(|(_, claim)| Violation {
        row: claim.row,
        kind: ProblemKind::Conflict,
        field: claim.member.field(),
        detail: "is taken".to_owned(),
    });
    Ok(violations.collect())
}

/// Deletes the reset tokens of users with a changed address: a token belongs to the address that it
/// was sent to.
fn end_reset_tokens(tx: &mut Tx<'_>, rows: &[ProposedRow<'_>]) -> Result<(), Problem> {
    let address = User::EMAIL_ADDRESS.field();
    let has_new_address = |row: &&ProposedRow<'_>| {
        row.was.is_some_and(|was| address.value(row.values) != address.value(&was.values))
    };
    let users: Vec<i64> =
        rows.iter().filter(has_new_address).filter_map(|row| row.was.map(|was| was.rid)).collect();
    for chunk in users.chunks(LIST) {
        let mut sql = Sql::new("WHERE user_rid IN ");
        sql.add_list(chunk.iter().copied().map(Value::Int));
        tx.queue(&StateTable::PasswordReset.delete(&sql.text), sql.parameters)?;
    }
    Ok(())
}

type UnchangedValues = HashMap<(Member, String), usize>;

/// The new values of the rows, and their unchanged values.
fn claims(rule: Rule, rows: &[ProposedRow<'_>]) -> (Vec<Claim>, UnchangedValues) {
    let (mut claims, mut unchanged) = (Vec::new(), UnchangedValues::new());
    for (index, row) in rows.iter().enumerate() {
        for member in Member::ALL {
            let Some(key) = member.of(row.values) else { continue };
            if row.was.and_then(|was| member.of(&was.values)).as_ref() == Some(&key) {
                unchanged.insert((member, key), index);
            } else if member == Member::Email || rule.signs_in {
                claims.push(Claim { row: index, member, key });
            }
        }
    }
    (claims, unchanged)
}

/// The claims that clash with unchanged values of other rows, or with earlier claims.
fn conflicts_in_batch(rule: Rule, claims: &[Claim], mut unchanged: UnchangedValues) -> HashSet<usize> {
    let mut conflicting = HashSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let by_another = |member| {
            unchanged.get(&(member, claim.key.clone())).is_some_and(|row| *row != claim.row)
                && rule.clash(claim.member, member)
        };
        if Member::ALL.into_iter().any(by_another) {
            conflicting.insert(index);
        } else {
            unchanged.insert((claim.member, claim.key.clone()), claim.row);
        }
    }
    conflicting
}

selectable! {
    /// A claimed value that a stored user has.
    struct StoredAddress<'r>(column) {
        user: i64 = "t.rid",
        key: &'r str = "t.{column}_key",
    }
}

/// Calls `on_match` with each claimed value that another stored user has.
fn find_stored(
    context: &Context,
    tx: &mut Tx<'_>,
    claims: &[Claim],
    own: &HashSet<i64>,
    mut on_match: impl FnMut(Member, &str),
) -> Result<(), Problem> {
    let statements = Member::ALL.map(|member| {
        let column = member.field().column;
        let columns = StoredAddress::columns(column);
        let mut sql = Sql::new(format!("SELECT {columns} FROM user_account t WHERE t.store = "))
            .bind(context.scope.store())
            .push(&format!(" AND t.{column}_key IN "));
        sql.add_list(claims.iter().map(|claim| Value::Text(claim.key.clone())));
        sql
    });
    let statements: Vec<_> =
        statements.iter().map(|sql| (sql.text.as_str(), sql.parameters.as_slice())).collect();
    tx.query_all(&statements, &mut |index, row| {
        let stored = StoredAddress::read(row)?;
        if let (Some(member), false) = (Member::ALL.get(index), own.contains(&stored.user)) {
            on_match(*member, stored.key);
        }
        Ok(())
    })?;
    Ok(())
}
