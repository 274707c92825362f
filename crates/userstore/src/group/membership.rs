//! The graph of groups: no cycles, limited nesting; memberships at any depth.

use std::collections::{HashMap, HashSet};

use chancery_record::Value;
use chancery_resource::{Answer, Call, NewLinks, Problem, Sql, Tx, find_row, list_where, selectable};

use super::GROUP;
use crate::user::USER;

/// The maximum depth of nested groups.
const MAX_NESTING: i64 = 100;

/// Refuses new parents of a group that would close a cycle, or nest too deeply.
pub fn guard_parents(tx: &mut Tx<'_>, parents: &NewLinks<'_>) -> Result<(), Problem> {
    let below = reach(tx, &[parents.row], Direction::Down)?;
    let above = reach(tx, parents.others, Direction::Up)?;
    check_links(&below, &above, parents.others)
}

/// Refuses new members of a group that would close a cycle, or nest too deeply.
pub fn guard_members(tx: &mut Tx<'_>, members: &NewLinks<'_>) -> Result<(), Problem> {
    let above = reach(tx, &[members.row], Direction::Up)?;
    let below = reach(tx, members.others, Direction::Down)?;
    check_links(&above, &below, members.others)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// The groups reachable from some groups, themselves included, each with the length of the longest path.
type Reached = Vec<(i64, i64)>;

selectable! {
    /// A group, and one of its parents or members, if it has any.
    struct Edge(far) {
        group: i64 = "r.rid",
        adjacent: Option<i64> = "e.{far}",
    }
}

fn reach(tx: &mut Tx<'_>, from: &[i64], direction: Direction) -> Result<Reached, Problem> {
    let (near, far) = match direction {
        Direction::Up => ("child_rid", "parent_rid"),
        Direction::Down => ("parent_rid", "child_rid"),
    };
    let mut links = Links::new();
    for chunk in from.chunks(512) {
        let mut sql =
            Sql::new("WITH RECURSIVE reached (rid) AS (SELECT g.rid FROM user_group g WHERE g.rid IN ");
        sql.add_list(chunk.iter().copied().map(Value::Int));
        sql.add(&format!(
            " UNION SELECT e.{far} FROM group_edge e JOIN reached r ON e.{near} = r.rid) \
             SELECT {} FROM reached r LEFT JOIN group_edge e ON e.{near} = r.rid",
            Edge::columns(far)
        ));
        tx.query(&sql.text, &sql.parameters, |row| {
            let edge = Edge::read(row)?;
            links.entry(edge.group).or_default().extend(edge.adjacent);
            Ok(())
        })?;
    }
    Ok(depths(&links))
}

/// The adjacent groups of each group in one direction.
type Links = HashMap<i64, HashSet<i64>>;

/// The length of the longest path to each group. Each link is followed once: the number of paths between groups that all link to
/// each other grows exponentially.
fn depths(links: &Links) -> Reached {
    let mut incoming: HashMap<i64, usize> = HashMap::new();
    for next in links.values().flatten() {
        *incoming.entry(*next).or_default() += 1;
    }
    let mut longest: HashMap<i64, i64> = links.keys().map(|rid| (*rid, 0)).collect();
    let mut ready: Vec<i64> = links.keys().copied().filter(|rid| !incoming.contains_key(rid)).collect();
    while let Some(rid) = ready.pop() {
        let depth = longest.get(&rid).copied().unwrap_or(0) + 1;
        for next in links.get(&rid).into_iter().flatten() {
            longest.entry(*next).and_modify(|known| *known = depth.max(*known)).or_insert(depth);
            if let Some(remaining) = incoming.get_mut(next) {
                *remaining -= 1;
                if *remaining == 0 {
                    ready.push(*next);
                }
            }
        }
    }
    longest.into_iter().collect()
}

/// Refuses new links between the groups on one side and those on the other if they close a cycle or nest
/// too deeply. `linked`: the groups on the other side that get a link.
fn check_links(one_side: &Reached, other_side: &Reached, linked: &[i64]) -> Result<(), Problem> {
    if one_side.iter().any(|(rid, _)| linked.contains(rid)) {
        return Err(Problem::conflict(
            "This would put a group inside itself. Remove the link that leads back first.",
        ));
    }
    let longest = |reached: &Reached| reached.iter().map(|(_, depth)| *depth).max().unwrap_or(0);
    if longest(one_side) + longest(other_side) + 1 > MAX_NESTING {
        return Err(Problem::invalid(format!(
            "Groups nest at most {MAX_NESTING} levels deep. Link them to a group further up."
        )));
    }
    Ok(())
}

/// Lists all groups below a group.
pub fn below_group(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (group, _) = find_row(&call.context, tx, &GROUP, call.request.parameter(0))?;
    list_where(call, tx, &|sql| {
        sql.add(
            " AND t.rid IN (WITH RECURSIVE below (rid) AS (SELECT e.child_rid FROM group_edge e \
             WHERE e.parent_rid = ",
        );
        sql.add_bound(group);
        sql.add(
            " UNION SELECT e.child_rid FROM group_edge e JOIN below b ON e.parent_rid = b.rid) \
             SELECT rid FROM below)",
        );
    })
}

/// Lists the groups of a user and all above them.
pub fn of_user(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (user, _) = find_row(&call.context, tx, &USER, call.request.parameter(0))?;
    list_where(call, tx, &|sql| {
        sql.add(
            " AND t.rid IN (WITH RECURSIVE above (rid) AS (SELECT m.group_rid FROM group_member m \
             WHERE m.user_rid = ",
        );
        sql.add_bound(user);
        sql.add(
            " UNION SELECT e.parent_rid FROM group_edge e JOIN above a ON e.child_rid = a.rid) \
             SELECT rid FROM above)",
        );
    })
}

#[cfg(test)]
mod tests {
    use super::{Links, depths};

    #[test]
    fn depths_are_those_of_the_longest_paths() {
        // 1 -> 2 -> 3, and 1 -> 3
        let links = Links::from([(1, [2, 3].into()), (2, [3].into()), (3, [].into())]);
        let mut lengths = depths(&links);
        lengths.sort_unstable();
        assert_eq!(lengths, [(1, 0), (2, 1), (3, 2)]);
    }

    #[test]
    fn each_link_of_a_dense_graph_is_walked_once() {
        let links: Links = (0..100).map(|rid| (rid, (rid + 1..100).collect())).collect();
        assert_eq!(depths(&links).iter().map(|(_, depth)| *depth).max(), Some(99));
    }
}
