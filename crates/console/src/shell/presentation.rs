//! How pages present a resource: what it adds to the standard arrangement, and the pages that it alone has.

use std::collections::HashMap;

use chancery_resource::{
    Op, Problem, RoleType, Shape,
    settings::{Owner, ProviderOption, Setting, Text},
};
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Value, json};

use super::{
    boxed::{Boxed, boxed},
    directory::{OperationName, Resource},
    fields::{Cell, written},
    parts::Card,
    visit::{Visit, hue, initials},
    words::Words,
};

/// Names and addresses, by ids.
pub type Names = HashMap<String, (String, Option<String>)>;

/// What a cell is made with: the words, and the names of rows that others name.
pub type CellContext<'a> = (&'a Words, &'a Names);

/// The cell that a row has in a column.
pub type CellOf = fn(&Value, CellContext<'_>) -> Cell;

/// A column of a list: the key of its label in the texts, and the cell of a row.
pub type Column = (&'static str, CellOf);

/// A row that a page is about.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    /// Its resource.
    pub resource: &'static Resource,
    /// Its key.
    pub key: &'a str,
    /// The address of its page.
    pub here: &'a str,
    /// The row, as the operation answers it.
    pub row: &'a Value,
    /// The highest role that keeps the person from what is protected of it.
    pub barrier: Option<RoleType>,
}

/// What an answer is, or why there is none.
pub type Answered = Result<Response<AnswerBody>, Problem>;

/// Answers a request for a page of a resource. The texts are the segments of the address where the pattern has [`ANY`], in their
/// order.
pub type Handler = for<'a> fn(&'a Visit<'a>, &'static Resource, [&'a str; 2]) -> Boxed<'a, Answered>;

/// Makes cards of a row's page.
pub type Cards = for<'a> fn(&'a Visit<'a>, Item<'a>) -> Boxed<'a, Result<Vec<Card>, Problem>>;

/// Finds what an operation on a row needs and does not have, with the row and the address of its page: the key of the text, and where
/// it is set.
pub type FindLack = fn(&Visit<'_>, &Op, (&Value, &str)) -> Option<(&'static str, String)>;

/// Finds names that the fields of rows do not lead to.
pub type FindNames =
    for<'a> fn(&'a Visit<'a>, &'static Resource, &'a [Value]) -> Boxed<'a, Result<Names, Problem>>;

/// Stands in the pattern of a page for any segment.
pub const ANY: &str = "*";

/// Segments that are no keys of rows: below them are standard pages.
const NO_KEYS: [&str; 3] = ["new", "act", "batch"];

/// A page that a resource alone has, below the address of its list, or in the place of a standard page.
pub struct Page {
    /// The segments of its address, at most two of them [`ANY`].
    at: &'static [&'static str],
    get: Option<Handler>,
    post: Option<Handler>,
}

impl Page {
    /// The page at these segments.
    pub const fn at(at: &'static [&'static str]) -> Self {
        Self { at, get: None, post: None }
    }

    /// The same, answering GET.
    #[must_use]
    pub const fn get(mut self, handler: Handler) -> Self {
        self.get = Some(handler);
        self
    }

    /// The same, answering POST.
    #[must_use]
    pub const fn post(mut self, handler: Handler) -> Self {
        self.post = Some(handler);
        self
    }

    /// The segments that stand for [`ANY`], where an address fits.
    fn keys<'a>(&self, rest: &[&'a str]) -> Option<[&'a str; 2]> {
        let mut keys = [""; 2];
        let mut free = keys.iter_mut();
        for (known, segment) in self.at.iter().zip(rest) {
            if *known == ANY && !NO_KEYS.contains(segment) {
                *free.next()? = *segment;
            } else if known != segment {
                return None;
            }
        }
        (self.at.len() == rest.len()).then_some(keys)
    }
}

/// A filter of a list that has a name.
pub struct View {
    /// Its name in addresses.
    pub name: &'static str,
    /// The key of its label in the texts.
    pub label: &'static str,
    /// The filter, with `{now}` where the time stands.
    pub filter: &'static str,
}

/// What deleting one is called: keys of the texts.
pub struct Deleting {
    /// The act.
    pub act: &'static str,
    /// What it means, of what ends and of which nothing is lost.
    pub text: Option<&'static str>,
    /// What was done.
    pub note: &'static str,
}

/// What a form can do besides saving.
pub struct FormAct {
    /// The operation that it takes.
    pub operation: OperationName,
    /// The key of its label in the texts.
    pub label: &'static str,
    /// The page that takes what was typed.
    pub page: &'static str,
}

/// What can be made for a row.
pub struct Making {
    /// The key of its label in the texts.
    pub label: &'static str,
    /// The resource that is made.
    pub shape: &'static Shape,
    /// Its field that names the row.
    pub field: &'static str,
}

/// The filters of a list that are parameters of its address, each in a field of a form.
pub struct Filters {
    /// The conditions of what an address asks for.
    pub conditions: fn(&[(String, String)]) -> Vec<String>,
    /// Whether the address asks for some rows by them.
    pub is_filtered: fn(&Visit<'_>) -> bool,
    /// The form.
    pub form: fn(&Visit<'_>, &Resource, &Names) -> Value,
}

/// What the settings of a row are known by.
pub struct Settings {
    /// The field of an option that names the row.
    pub field: &'static str,
    /// What kind of owner of settings a row is.
    pub owner: OwnerOf,
}

/// What kind of owner of settings a row is.
pub enum OwnerOf {
    /// The same for all rows.
    All(Owner),
    /// This member of the row tells its type.
    Row(&'static str),
    /// This member of the row names its type.
    Type(&'static str),
}

/// Who of a resource may do something.
pub struct Rights {
    /// The operation that tells what one may do.
    pub operation: OperationName,
    /// Whether roles are given on the page of rights.
    pub are_given: bool,
    /// Where groups are looked for through which one has roles: the resource of the user store, and its set of groups.
    pub in_store: Option<(&'static Shape, &'static str)>,
}

/// What can be done with a row that only rows of its resource have, by where it stands among the acts of all.
#[derive(Default)]
pub struct Acts {
    /// Before all others, whoever may change the row.
    pub first: Vec<Value>,
    /// Before its settings.
    pub before_settings: Vec<Value>,
    /// After its settings.
    pub after_settings: Vec<Value>,
    /// After all others, whoever may change the row.
    pub last: Vec<Value>,
}

/// How a resource's pages differ from the standard presentation. Defaults come from [`Presentation::STANDARD`].
pub struct Presentation {
    /// Its icon.
    pub icon: &'static str,
    /// The key of the text of its place in the navigation, where that is not its name.
    pub label: Option<&'static str>,
    /// The same for the heading of its list, where that is another one.
    pub list_label: Option<&'static str>,
    /// Where its place in the navigation leads, if not to its list, and the key of the text.
    pub place: Option<(&'static str, &'static str)>,
    /// The page of the user store that takes the place of its list, if there is one.
    pub list_page: Option<&'static str>,
    /// The letter that leads to it after G.
    pub letter: Option<char>,
    /// The columns of its list; none where fields are the columns.
    pub columns: &'static [Column],
    /// Whether an arranged list shows the name of the row that this field names.
    pub shows_name: fn(&str) -> bool,
    /// Whether a list shows what its rows are linked with.
    pub shows_sets: bool,
    /// What one row is called.
    pub title: fn(&Value) -> Option<String>,
    /// What the page of one row is called where that takes words, or names of others.
    pub heading: fn(&Value, CellContext<'_>) -> Option<String>,
    /// The state of one row in a word, for its page.
    pub badge: Option<CellOf>,
    /// What tells rows of the same name apart.
    pub sub: fn(&Value) -> Option<String>,
    /// Whether rows have pictures of initials.
    pub has_picture: bool,
    /// The sections of its form: the key of each title, and its fields in their order. What no section names comes after them.
    pub sections: &'static [(&'static str, &'static [&'static str])],
    /// The views of its list.
    pub views: &'static [View],
    /// The query of its list that puts rows in order, where that is not the order of keys.
    pub order: &'static [(&'static str, &'static str)],
    /// The fields by which its list can be sorted, each below the column of this label: an index serves them, however many rows
    /// there are.
    pub sorted: &'static [(&'static str, &'static str)],
    /// The fields by whose beginning its list is searched; none: the title.
    pub searched: &'static [&'static str],
    /// The filters of its list.
    pub filters: Option<&'static Filters>,
    /// What its list says where it is empty: the key of the text.
    pub empty: Option<&'static str>,
    /// What its list leads to for a new one, in the place of the form.
    pub create: fn(&Visit<'_>, &Resource) -> Option<Value>,
    /// Whether the person may import rows from a file, on the page `import`.
    pub is_imported: fn(&Visit<'_>, &Resource) -> bool,
    /// Names of its list that no field of the rows leads to.
    pub more_names: Option<FindNames>,
    /// The shape of what a field names by what else its row says.
    pub named_by: fn(&str, &Value) -> Option<&'static Shape>,
    /// Where a row leads that has no page of its own.
    pub leads_to: fn(&Value) -> Option<String>,
    /// What its form can do besides saving.
    pub form_act: Option<FormAct>,
    /// The operations on one row that come first, the most needed one before the others.
    pub first_acts: &'static [OperationName],
    /// The operations that nobody can take back: their pages ask for the name.
    pub for_good: &'static [OperationName],
    /// The operations that are taken back by doing them again with what was there before.
    pub taken_back: &'static [OperationName],
    /// The operation that brings one back from a quarantine.
    pub restores: Option<OperationName>,
    /// The operations that are no acts of the pattern: they have pages of their own, or are for who signs in.
    pub apart: &'static [OperationName],
    /// The operation that leaves a secret that it made in an option of the row, and the option's name.
    pub leaves_secret: Option<(OperationName, Setting<ProviderOption, Text>)>,
    /// The member that the answer to a creation, or to an act on one, tells this once, where the fields do not tell which.
    pub shown_once: Option<&'static str>,
    /// Whether an operation changes anything of a row as it is: what does not is not offered.
    pub has_effect: fn(&Op, &Value) -> bool,
    /// What an operation needs and does not have: the key of the text, and where it is set.
    pub lacks: FindLack,
    /// What can be made for a row.
    pub makes: &'static [Making],
    /// What can be done with a row besides.
    pub acts: fn(&Visit<'_>, &Item<'_>) -> Acts,
    /// The cards that stand before what belongs to a row.
    pub cards: Cards,
    /// The cards that stand after what belongs to a row.
    pub cards_after: Cards,
    /// The cards of a row in quarantine.
    pub cards_deleted: Cards,
    /// What deleting one is called.
    pub deleting: Deleting,
    /// How rows have settings.
    pub settings: Option<Settings>,
    /// How rows have roles.
    pub rights: Option<Rights>,
    /// The pages that it alone has.
    pub pages: &'static [Page],
}

impl Presentation {
    /// The standard arrangement.
    pub const STANDARD: Self = Self {
        icon: "tag",
        label: None,
        list_label: None,
        place: None,
        list_page: None,
        letter: None,
        columns: &[],
        shows_name: |_| false,
        shows_sets: false,
        title: |_| None,
        heading: |_, _| None,
        badge: None,
        sub: |_| None,
        has_picture: false,
        sections: &[],
        views: &[],
        order: &[],
        sorted: &[],
        searched: &[],
        filters: None,
        empty: None,
        create: |_, _| None,
        is_imported: |_, _| false,
        more_names: None,
        named_by: |_, _| None,
        leads_to: |_| None,
        form_act: None,
        first_acts: &[],
        for_good: &[],
        taken_back: &[],
        restores: None,
        apart: &[],
        leaves_secret: None,
        shown_once: None,
        has_effect: |_, _| true,
        lacks: |_, _, _| None,
        makes: &[],
        acts: |_, _| Acts {
            first: Vec::new(),
            before_settings: Vec::new(),
            after_settings: Vec::new(),
            last: Vec::new(),
        },
        cards: no_cards,
        cards_after: no_cards,
        cards_deleted: no_cards,
        deleting: Deleting { act: "delete", text: None, note: "deleted" },
        settings: None,
        rights: None,
        pages: &[],
    };

    /// The state of one row in a word, as templates take it.
    pub fn badge(&self, row: &Value, words: &Words) -> Value {
        self.badge.map_or(Value::Null, |state| {
            let cell = state(row, (words, &Names::new()));
            json!({ "text": cell.text, "tone": cell.tone })
        })
    }

    /// The picture of a row's initials, as templates take it.
    pub fn picture(&self, row: &Value) -> Value {
        if !self.has_picture {
            return Value::Null;
        }
        let name = (self.title)(row).unwrap_or_default();
        json!({ "initials": initials(&name), "hue": hue(&name) })
    }

    /// The filter of the view of this name, now.
    pub fn view(&self, name: &str) -> Option<String> {
        let known = self.views.iter().find(|view| view.name == name);
        known.map(|view| view.filter.replace("{now}", &written(chancery_web::now())))
    }

    /// Whether an operation can be taken back by nobody.
    pub fn is_for_good(&self, op: &Op) -> bool {
        self.for_good.iter().any(|name| name.is_of(op))
    }

    /// Whether an operation brings one back from a quarantine.
    pub fn is_restoring(&self, op: &Op) -> bool {
        self.restores.is_some_and(|name| name.is_of(op))
    }

    /// Whether an operation is taken back by doing it again with what was there before.
    pub fn is_taken_back(&self, op: &Op) -> bool {
        self.taken_back.iter().any(|name| name.is_of(op))
    }

    /// Whether an operation is no act of the pattern.
    pub fn is_apart(&self, op: &Op) -> bool {
        self.apart.iter().any(|name| name.is_of(op))
    }

    /// What answers a request for the rest of an address below that of the list, with the segments that stand for [`ANY`], where
    /// the resource has a page of its own there.
    pub fn page<'a>(&self, rest: &[&'a str], is_post: bool) -> Option<(Handler, [&'a str; 2])> {
        self.pages.iter().find_map(|page| {
            let handler = if is_post { page.post } else { page.get };
            Some((handler?, page.keys(rest)?))
        })
    }
}

fn no_cards<'a>(_: &'a Visit<'a>, _: Item<'a>) -> Boxed<'a, Result<Vec<Card>, Problem>> {
    boxed(|| std::future::ready(Ok(Vec::new())))
}

#[cfg(test)]
mod tests {
    use super::{ANY, Page};

    #[test]
    fn a_page_is_found_by_its_segments() {
        let tree = Page::at(&[ANY, "tree"]);
        assert_eq!(tree.keys(&["1", "tree"]), Some(["1", ""]));
        assert_eq!(
            (tree.keys(&["1"]), tree.keys(&["1", "tree", "2"]), tree.keys(&["1", "roots"])),
            (None, None, None)
        );
        assert_eq!(Page::at(&[ANY, "rotation", ANY]).keys(&["1", "rotation", "2"]), Some(["1", "2"]));
        // what is below these words is a standard page
        assert_eq!(
            (Page::at(&[ANY]).keys(&["new"]), Page::at(&["new"]).keys(&["new"])),
            (None, Some(["", ""]))
        );
        assert_eq!(Page::at(&[]).keys(&[]), Some(["", ""]));
    }
}
