//! Search for people by the prefix of a name or an address: a few bounded index reads, merged. One condition with
//! `or` would make both engines scan all people if nothing matches.

use std::collections::HashSet;

use chancery_record::{FieldOf, Name, fold};
use chancery_resource::{
    Answer, Call, Context, Problem, QueryParameter, Sql, StoredRow, Tx, add_beginning, load_statements,
    select_beginning, select_by, write_all,
};

use super::{USER, User};

/// The search text.
const TEXT: QueryParameter = QueryParameter::text(
    "q",
    "The beginning of a login name, e-mail address, last name or first name, or of `first last` or `last, first`.",
    200,
);
/// The maximum number of results.
const COUNT: QueryParameter =
    QueryParameter::number("count", "The maximum number of users in the response. Without it, 20.", 1, 100);
const DEFAULT_COUNT: i64 = 20;

/// The query parameters of [`search`].
pub static PARAMETERS: &[QueryParameter] = &[TEXT, COUNT];

/// The rank of a match; the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    /// By the whole login name.
    LoginName,
    /// By the whole e-mail address.
    EmailAddress,
    /// In another way: by the read of this number.
    Other(usize),
}

/// Responds with the people who match a text.
pub fn search(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let text = fold(TEXT.read_text(&call.request)?);
    let count = COUNT.read_number(&call.request)?.unwrap_or(DEFAULT_COUNT);
    let reads = reads(&call.context, &text, count);
    let mut people = Vec::new();
    for (read, person) in load_statements(&call.context, tx, &USER, &reads)? {
        people.push((rank(&text, read, &person)?, person));
    }
    // stable: within one read the order stays
    people.sort_by_key(|(rank, _)| *rank);
    let mut seen = HashSet::new();
    people.retain(|(_, person)| seen.insert(person.rid));
    people.truncate(usize::try_from(count).unwrap_or_default());
    let rows: Vec<StoredRow> = people.into_iter().map(|(_, person)| person).collect();
    write_all(call, tx, &USER, &rows)?;
    Ok(Answer::new(call.request.op.status))
}

fn rank(text: &str, read: usize, person: &StoredRow) -> Result<Match, Problem> {
    if fold(User::LOGIN_NAME.get(&person.values)?.as_str()) == text {
        return Ok(Match::LoginName);
    }
    let address = User::EMAIL_ADDRESS.get(&person.values)?;
    let is_address = address.is_some_and(|address| fold(address.as_str()) == text);
    Ok(if is_address { Match::EmailAddress } else { Match::Other(read) })
}

/// The reads that find people of the context's store by a folded text, the most specific first. Each is the start of
/// an index range, in the index's order, with at most `count` rows.
pub fn reads(context: &Context, text: &str, count: i64) -> Vec<Sql> {
    let (login, address) = (User::LOGIN_NAME, User::EMAIL_ADDRESS);
    let (first, last) = (User::FIRST_NAME, User::LAST_NAME);
    let ordered = |sql: Sql, order: String| sql.push(&format!(" ORDER BY {order} LIMIT {count}"));
    let by_both = |(whole, name), (prefix, other): (&str, FieldOf<User, Option<Name>>)| {
        let mut sql = select_by(context, &USER, name, whole);
        if !prefix.is_empty() {
            add_beginning(&mut sql, other, prefix);
        }
        ordered(sql, format!("t.{other}_key NULLS FIRST, t.id"))
    };
    let mut reads = vec![ordered(select_beginning(context, &USER, login, text), format!("t.{login}_key"))];
    if let Some((whole, prefix)) = split_around(text, text.find(',')) {
        reads.push(by_both((whole, last), (prefix, first)));
    }
    // of several words the first one, or all but the last, are the first name
    let (from, to) = (text.find(char::is_whitespace), text.rfind(char::is_whitespace));
    for at in [from, to.filter(|to| Some(*to) != from)] {
        if let Some((whole, prefix)) = split_around(text, at) {
            reads.push(by_both((whole, first), (prefix, last)));
        }
    }
    for (name, order) in [
        (last, format!("t.{last}_key, t.{first}_key NULLS FIRST, t.id")),
        (first, format!("t.{first}_key, t.{last}_key NULLS FIRST, t.id")),
    ] {
        reads.push(ordered(select_beginning(context, &USER, name, text), order));
    }
    reads.push(ordered(select_beginning(context, &USER, address, text), format!("t.{address}_key, t.id")));
    reads
}

/// The trimmed text before and after the character at this position.
fn split_around(text: &str, at: Option<usize>) -> Option<(&str, &str)> {
    let (before, after) = text.split_at_checked(at?)?;
    let mut after = after.chars();
    after.next();
    let (before, after) = (before.trim(), after.as_str().trim());
    (!before.is_empty()).then_some((before, after))
}
