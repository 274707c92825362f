//! The presentation of a resource: its differences from the standard one, and its custom pages.

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
    components::Card,
    directory::{OperationName, Resource},
    fields::{Cell, rfc3339},
    visit::{Visit, hue, initials},
    words::Words,
};

/// Names and URLs of rows, by id.
pub type Names = HashMap<String, (String, Option<String>)>;

/// The context of a cell.
#[derive(Clone, Copy)]
pub struct CellContext<'a> {
    /// The texts.
    pub words: &'a Words,
    /// The names of referenced rows.
    pub names: &'a Names,
}

/// Renders the cell of a row in a column.
pub type CellOf = fn(&Value, CellContext<'_>) -> Cell;

/// A column of a list: the key of its label in the texts, and the renderer of its cells.
pub type Column = (&'static str, CellOf);

/// The row of an item page.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    /// Its resource.
    pub resource: &'static Resource,
    /// Its key.
    pub key: &'a str,
    /// The URL of its page.
    pub here: &'a str,
    /// The row, as the API returns it.
    pub row: &'a Value,
    /// The highest role that prevents the user from changing protected members.
    pub protecting_role: Option<RoleType>,
}

/// The response of a page.
pub type PageResult = Result<Response<AnswerBody>, Problem>;

/// Answers a request for a custom page. The texts are the segments at [`ANY`], in order.
pub type Handler = for<'a> fn(&'a Visit<'a>, &'static Resource, [&'a str; 2]) -> Boxed<'a, PageResult>;

/// Builds cards of an item page.
pub type Cards = for<'a> fn(&'a Visit<'a>, Item<'a>) -> Boxed<'a, Result<Vec<Card>, Problem>>;

/// Checks the prerequisite of an operation on a row, given the row and the URL of its page. Returns the key of the text
/// and the URL where it is set.
pub type FindPrerequisite = fn(&Visit<'_>, &Op, &Value, &str) -> Option<(&'static str, String)>;

/// Looks up names of referenced rows that no field declares.
pub type FindNames =
    for<'a> fn(&'a Visit<'a>, &'static Resource, &'a [Value]) -> Boxed<'a, Result<Names, Problem>>;

/// Finds the setting that something else replaces in the row with this key, such as a secret that a certificate replaces.
pub type FindReplaced =
    for<'a> fn(&'a Visit<'a>, &'a str, &'a Value) -> Boxed<'a, Result<Option<&'static str>, Problem>>;

/// Matches any segment in the pattern of a page.
pub const ANY: &str = "*";

/// Segments that are no keys: standard pages are below them.
const NO_KEYS: [&str; 3] = ["new", "act", "batch"];

/// A custom page of a resource, below the URL of its list, or instead of a standard page.
pub struct Page {
    /// The segments of its URL, at most two of them [`ANY`].
    at: &'static [&'static str],
    get: Option<Handler>,
    post: Option<Handler>,
}

impl Page {
    /// A page at these segments.
    pub const fn at(at: &'static [&'static str]) -> Self {
        Self { at, get: None, post: None }
    }

    /// The same page with a handler for GET.
    #[must_use]
    pub const fn get(mut self, handler: Handler) -> Self {
        self.get = Some(handler);
        self
    }

    /// The same page with a handler for POST.
    #[must_use]
    pub const fn post(mut self, handler: Handler) -> Self {
        self.post = Some(handler);
        self
    }

    /// The segments at [`ANY`], if the URL matches.
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

/// A named filter of a list.
pub struct View {
    /// Its name in URLs.
    pub name: &'static str,
    /// The key of its label in the texts.
    pub label: &'static str,
    /// The filter, with `{now}` as the current time.
    pub filter: &'static str,
}

/// The texts of a deletion: keys of the texts.
pub struct DeletionTexts {
    /// The action.
    pub act: &'static str,
    /// Explanation when a row is ended, not deleted.
    pub text: Option<&'static str>,
    /// The notification.
    pub note: &'static str,
}

/// An additional button of a form.
pub struct FormAct {
    /// The required operation.
    pub operation: OperationName,
    /// The key of its label in the texts.
    pub label: &'static str,
    /// The page that receives the form.
    pub page: &'static str,
}

/// A link that creates a row for this one.
pub struct CreationLink {
    /// The key of its label in the texts.
    pub label: &'static str,
    /// The resource of the new row.
    pub shape: &'static Shape,
    /// Its field that refers to this row.
    pub field: &'static str,
}

/// The filters of a list that are query parameters, each with a form field.
pub struct Filters {
    /// The filter conditions of the query parameters.
    pub conditions: fn(&[(String, String)]) -> Vec<String>,
    /// Whether the query parameters contain a filter.
    pub is_filtered: fn(&Visit<'_>) -> bool,
    /// The form.
    pub form: fn(&Visit<'_>, &Resource, &Names) -> Value,
}

/// How the settings of a row are found.
pub struct Settings {
    /// The field of an option that refers to the row.
    pub field: &'static str,
    /// The type of the settings owner.
    pub owner: OwnerOf,
    /// The setting that may be empty in a row, if there can be one.
    pub replaced: Option<FindReplaced>,
}

/// The type of a settings owner.
pub enum OwnerOf {
    /// The same for all rows.
    All(Owner),
    /// This member of the row contains the type.
    Row(&'static str),
    /// This member of the row refers to the type.
    Type(&'static str),
}

/// The roles of a principal.
pub struct Rights {
    /// The operation that returns the effective permissions.
    pub operation: OperationName,
    /// Whether roles are assigned on the page of permissions.
    pub are_given: bool,
    /// Where inherited group memberships are looked up: the resource of the user store, and its set of groups.
    pub in_store: Option<(&'static Shape, &'static str)>,
}

/// Actions that only rows of this resource have, by their position among the standard actions.
#[derive(Default)]
pub struct Acts {
    /// Before all others, whether or not the row is writable.
    pub first: Vec<Value>,
    /// Before the settings.
    pub before_settings: Vec<Value>,
    /// After the settings.
    pub after_settings: Vec<Value>,
    /// After all others, whether or not the row is writable.
    pub last: Vec<Value>,
}

/// The presentation of a resource. Defaults come from [`Presentation::STANDARD`].
pub struct Presentation {
    /// Its icon.
    pub icon: &'static str,
    /// The key of its label in the navigation, if it differs from the resource's name.
    pub label: Option<&'static str>,
    /// The key of the heading of its list, if it differs from the label.
    pub list_label: Option<&'static str>,
    /// The target of its navigation entry, if that is not its list, and the key of the label.
    pub navigation_target: Option<(&'static str, &'static str)>,
    /// The page of the user store that replaces its list, if there is one.
    pub list_page: Option<&'static str>,
    /// The letter of its shortcut after G.
    pub letter: Option<char>,
    /// The columns of its list; empty if fields are the columns.
    pub columns: &'static [Column],
    /// Whether a list with custom columns looks up the name of the row that this field refers to.
    pub shows_name: fn(&str) -> bool,
    /// Whether the list reads related rows.
    pub shows_sets: bool,
    /// The display name of a row.
    pub title: fn(&Value) -> Option<String>,
    /// The heading of an item page, if it needs texts or names of other rows.
    pub heading: fn(&Value, CellContext<'_>) -> Option<String>,
    /// The state of a row, as a badge of its page.
    pub badge: Option<CellOf>,
    /// The second line, which distinguishes rows of the same name.
    pub sub: fn(&Value) -> Option<String>,
    /// Whether rows have a picture with initials.
    pub has_picture: bool,
    /// The sections of its form: the key of each title, and its fields in order. Other fields follow.
    pub sections: &'static [(&'static str, &'static [&'static str])],
    /// The named filters of its list.
    pub views: &'static [View],
    /// The query that sorts its list, if the order is not that of the keys.
    pub order: &'static [(&'static str, &'static str)],
    /// The fields by which its list can be sorted, with the labels of their columns: an index supports each, for any
    /// number of rows.
    pub sorted: &'static [(&'static str, &'static str)],
    /// The fields whose prefix is searched; empty: the title.
    pub searched: &'static [&'static str],
    /// The filters of its list.
    pub filters: Option<&'static Filters>,
    /// The key of the text of an empty list.
    pub empty: Option<&'static str>,
    /// A link that replaces the form for a new row.
    pub create: fn(&Visit<'_>, &Resource) -> Option<Value>,
    /// Whether the user may import rows from a file, on the page `import`.
    pub is_imported: fn(&Visit<'_>, &Resource) -> bool,
    /// Looks up names for its list that no field declares.
    pub more_names: Option<FindNames>,
    /// The shape of the row that a field refers to, derived from other members.
    pub referenced_shape: fn(&str, &Value) -> Option<&'static Shape>,
    /// The link of a row without a page of its own.
    pub row_href: fn(&Value) -> Option<String>,
    /// An additional button of its form.
    pub form_act: Option<FormAct>,
    /// The operations on one row that are listed first, in this order.
    pub first_acts: &'static [OperationName],
    /// The operations that cannot be undone: their pages ask for the name.
    pub irreversible: &'static [OperationName],
    /// The operations that are undone by repeating them with the previous values.
    pub undoable: &'static [OperationName],
    /// The operation that restores a row from quarantine.
    pub restores: Option<OperationName>,
    /// The operations without a standard page: they have custom pages, or belong to the sign-in.
    pub excluded: &'static [OperationName],
    /// The operation that stores a generated secret in an option of the row, and that option.
    pub stores_secret: Option<(OperationName, Setting<ProviderOption, Text>)>,
    /// The response member that contains a generated secret once, if no field declares it.
    pub shown_once: Option<&'static str>,
    /// Whether an operation changes a row in its present state. Operations without effect are not offered.
    pub has_effect: fn(&Op, &Value) -> bool,
    /// The missing prerequisite of an operation: the key of the text, and the URL where it is set.
    pub missing_prerequisite: FindPrerequisite,
    /// Links that create a row for this one.
    pub creations: &'static [CreationLink],
    /// Additional actions on a row.
    pub acts: fn(&Visit<'_>, &Item<'_>) -> Acts,
    /// Cards before the related rows.
    pub cards: Cards,
    /// Cards after the related rows.
    pub cards_after: Cards,
    /// Cards on the page of a relation whose links can give roles.
    pub cards_of_links: Cards,
    /// Cards of a row in quarantine.
    pub cards_deleted: Cards,
    /// The texts of a deletion.
    pub deleting: DeletionTexts,
    /// The settings of rows.
    pub settings: Option<Settings>,
    /// The roles of rows.
    pub rights: Option<Rights>,
    /// The custom pages.
    pub pages: &'static [Page],
}

impl Presentation {
    /// The standard presentation.
    pub const STANDARD: Self = Self {
        icon: "tag",
        label: None,
        list_label: None,
        navigation_target: None,
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
        referenced_shape: |_, _| None,
        row_href: |_| None,
        form_act: None,
        first_acts: &[],
        irreversible: &[],
        undoable: &[],
        restores: None,
        excluded: &[],
        stores_secret: None,
        shown_once: None,
        has_effect: |_, _| true,
        missing_prerequisite: |_, _, _, _| None,
        creations: &[],
        acts: |_, _| Acts {
            first: Vec::new(),
            before_settings: Vec::new(),
            after_settings: Vec::new(),
            last: Vec::new(),
        },
        cards: no_cards,
        cards_after: no_cards,
        cards_of_links: no_cards,
        cards_deleted: no_cards,
        deleting: DeletionTexts { act: "delete", text: None, note: "deleted" },
        settings: None,
        rights: None,
        pages: &[],
    };

    /// The template context of the badge.
    pub fn badge(&self, row: &Value, words: &Words) -> Value {
        self.badge.map_or(Value::Null, |state| {
            let cell = state(row, CellContext { words, names: &Names::new() });
            json!({ "text": cell.text, "tone": cell.tone })
        })
    }

    /// The template context of the picture with initials.
    pub fn picture(&self, row: &Value) -> Value {
        if !self.has_picture {
            return Value::Null;
        }
        let name = (self.title)(row).unwrap_or_default();
        json!({ "initials": initials(&name), "hue": hue(&name) })
    }

    /// The filter of the view of this name, at the present time.
    pub fn view(&self, name: &str) -> Option<String> {
        let known = self.views.iter().find(|view| view.name == name);
        known.map(|view| view.filter.replace("{now}", &rfc3339(chancery_web::now())))
    }

    /// Whether an operation cannot be undone.
    pub fn is_irreversible(&self, op: &Op) -> bool {
        self.irreversible.iter().any(|name| name.is_of(op))
    }

    /// Whether an operation restores a row from quarantine.
    pub fn is_restoring(&self, op: &Op) -> bool {
        self.restores.is_some_and(|name| name.is_of(op))
    }

    /// Whether an operation is undone by repeating it with the previous values.
    pub fn is_undoable(&self, op: &Op) -> bool {
        self.undoable.iter().any(|name| name.is_of(op))
    }

    /// Whether an operation has no standard page.
    pub fn is_excluded(&self, op: &Op) -> bool {
        self.excluded.iter().any(|name| name.is_of(op))
    }

    /// The handler of a custom page at this URL below that of the list, with the segments at [`ANY`].
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
        // standard pages are below these segments
        assert_eq!(
            (Page::at(&[ANY]).keys(&["new"]), Page::at(&["new"]).keys(&["new"])),
            (None, Some(["", ""]))
        );
        assert_eq!(Page::at(&[]).keys(&[]), Some(["", ""]));
    }
}
