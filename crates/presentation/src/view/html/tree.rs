//! A page as the tree that browsers build, within bounds: a parser's work can be the square of its input.

use std::{borrow::Cow, cell::RefCell, rc::Rc};

use html5ever::{
    Attribute, ParseOpts, QualName,
    interface::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink},
    local_name, ns, parse_document,
    tendril::{StrTendril, TendrilSink},
};

/// The deepest nesting. Browsers stop at 512.
pub const DEEPEST: usize = 200;
/// The most nodes of a page.
const MAX_NODES: usize = 50_000;
/// The most comparisons of attributes, each with the others of its tag.
const MAX_COMPARISONS: usize = 32_000_000;
/// How many bytes are parsed between checks of the bounds.
const CHUNK: usize = 512;

/// The content of a node.
pub enum Content {
    /// An element.
    Element(Rc<QualName>, Vec<Attribute>),
    /// Text.
    Text(String),
    /// The document, or an irrelevant node.
    Other,
}

/// A node, with the positions of its neighbours.
struct Node {
    content: Content,
    depth: usize,
    parent: Option<usize>,
    previous: Option<usize>,
    next: Option<usize>,
    first: Option<usize>,
    last: Option<usize>,
}

/// A parsed page.
pub struct Tree(Vec<Node>);

impl Tree {
    /// The content of the node at a position.
    pub fn content(&self, at: usize) -> &Content {
        self.0.get(at).map_or(&Content::Other, |node| &node.content)
    }

    /// The positions of a node's children; the document is at 0.
    pub fn children(&self, at: usize) -> impl Iterator<Item = usize> {
        let next = |at: &usize| self.0.get(*at).and_then(|node| node.next);
        std::iter::successors(self.0.get(at).and_then(|node| node.first), next)
    }
}

/// Parses a page; `None` for one that goes beyond the bounds.
pub fn parse(page: &str) -> Option<Tree> {
    let mut parser = parse_document(Builder::new(), ParseOpts::default());
    let (mut rest, mut apart, mut comparisons) = (page, 0, 0_usize);
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rest.floor_char_boundary(CHUNK));
        parser.process(StrTendril::from(chunk));
        let state = &parser.tokenizer.sink.sink;
        // the number of attributes of an open tag is unknown: at most the number of separators in it
        let signs = chunk.bytes().filter(|byte| byte.is_ascii_whitespace() || b"/\"'".contains(byte)).count();
        apart = if state.has_grown() { signs } else { apart + signs };
        comparisons += signs * apart;
        if state.is_too_large() || comparisons > MAX_COMPARISONS {
            return None;
        }
        rest = after;
    }
    Some(Tree(parser.finish()))
}

/// A node, as the parser refers to it.
#[derive(Clone)]
struct Handle {
    at: usize,
    name: Rc<QualName>,
}

/// The sink of the parser.
struct Builder {
    nodes: RefCell<Vec<Node>>,
    seen: RefCell<usize>,
    changes: RefCell<usize>,
    is_too_deep: RefCell<bool>,
    nameless: Rc<QualName>,
}

impl Builder {
    fn new() -> Self {
        let builder = Self {
            nodes: RefCell::new(Vec::new()),
            seen: RefCell::new(0),
            changes: RefCell::new(0),
            is_too_deep: RefCell::new(false),
            nameless: Rc::new(QualName::new(None, ns!(), local_name!(""))),
        };
        builder.make(Content::Other);
        builder
    }

    /// Whether the tree changed since the last call.
    fn has_grown(&self) -> bool {
        let changes = *self.changes.borrow();
        self.seen.replace(changes) != changes
    }

    fn is_too_large(&self) -> bool {
        *self.is_too_deep.borrow() || self.nodes.borrow().len() > MAX_NODES
    }

    fn make(&self, content: Content) -> usize {
        let mut nodes = self.nodes.borrow_mut();
        let [parent, previous, next, first, last] = [None; 5];
        nodes.push(Node { content, depth: 0, parent, previous, next, first, last });
        nodes.len() - 1
    }

    fn handle(&self, content: Content) -> Handle {
        Handle { at: self.make(content), name: Rc::clone(&self.nameless) }
    }

    /// Reads or changes a node.
    fn with<T: Default>(&self, at: usize, work: impl FnOnce(&mut Node) -> T) -> T {
        self.nodes.borrow_mut().get_mut(at).map(work).unwrap_or_default()
    }

    fn detach(&self, at: usize) {
        let (parent, previous, next) =
            self.with(at, |node| (node.parent.take(), node.previous.take(), node.next.take()));
        match (previous, parent) {
            (Some(previous), _) => self.with(previous, |node| node.next = next),
            (None, Some(parent)) => self.with(parent, |node| node.first = next),
            (None, None) => {}
        }
        match (next, parent) {
            (Some(next), _) => self.with(next, |node| node.previous = previous),
            (None, Some(parent)) => self.with(parent, |node| node.last = previous),
            (None, None) => {}
        }
    }

    /// Inserts a node below a parent: before a sibling, or last.
    fn put(&self, at: usize, parent: usize, before: Option<usize>) {
        self.detach(at);
        *self.changes.borrow_mut() += 1;
        let depth = self.with(parent, |node| node.depth) + 1;
        if depth > DEEPEST {
            *self.is_too_deep.borrow_mut() = true;
        }
        let previous = match before {
            Some(before) => self.with(before, |node| node.previous.replace(at)),
            None => self.with(parent, |node| node.last.replace(at)),
        };
        match previous {
            Some(previous) => self.with(previous, |node| node.next = Some(at)),
            None => self.with(parent, |node| node.first = Some(at)),
        }
        self.with(at, |node| {
            (node.parent, node.previous, node.next, node.depth) = (Some(parent), previous, before, depth);
        });
    }

    /// Inserts a node, or text, which joins the text before it.
    fn add(&self, child: NodeOrText<Handle>, parent: usize, before: Option<usize>) {
        let text = match child {
            NodeOrText::AppendNode(node) => return self.put(node.at, parent, before),
            NodeOrText::AppendText(text) => text,
        };
        let neighbour = match before {
            Some(before) => self.with(before, |node| node.previous),
            None => self.with(parent, |node| node.last),
        };
        let joined = neighbour.is_some_and(|neighbour| {
            self.with(neighbour, |node| match &mut node.content {
                Content::Text(known) => {
                    known.push_str(&text);
                    true
                }
                _ => false,
            })
        });
        if joined {
            *self.changes.borrow_mut() += 1;
        } else {
            self.put(self.make(Content::Text(text.to_string())), parent, before);
        }
    }
}

impl TreeSink for Builder {
    type Handle = Handle;
    type Output = Vec<Node>;
    type ElemName<'a> = &'a QualName;

    fn finish(self) -> Vec<Node> {
        self.nodes.into_inner()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        Handle { at: 0, name: Rc::clone(&self.nameless) }
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> &'a QualName {
        &target.name
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, _: ElementFlags) -> Handle {
        let name = Rc::new(name);
        Handle { at: self.make(Content::Element(Rc::clone(&name), attributes)), name }
    }

    fn create_comment(&self, _: StrTendril) -> Handle {
        self.handle(Content::Other)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Handle {
        self.handle(Content::Other)
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.add(child, parent.at, None);
    }

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        if let Some(parent) = self.with(sibling.at, |node| node.parent) {
            self.add(child, parent, Some(sibling.at));
        }
    }

    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        match self.with(element.at, |node| node.parent) {
            Some(parent) => self.add(child, parent, Some(element.at)),
            None => self.add(child, previous.at, None),
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    /// The content of a template is no part of the page: it has no parent, and its nesting counts all the same.
    fn get_template_contents(&self, target: &Handle) -> Handle {
        let contents = self.handle(Content::Other);
        let depth = self.with(target.at, |node| node.depth) + 1;
        self.with(contents.at, |node| node.depth = depth);
        contents
    }

    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        one.at == other.at
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn add_attrs_if_missing(&self, target: &Handle, attributes: Vec<Attribute>) {
        self.with(target.at, |node| {
            if let Content::Element(_, known) = &mut node.content {
                for attribute in attributes {
                    if known.iter().all(|one| one.name != attribute.name) {
                        known.push(attribute);
                    }
                }
            }
        });
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.detach(target.at);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        while let Some(child) = self.with(node.at, |node| node.first) {
            self.put(child, new_parent.at, None);
        }
    }
}
