//! The number of shapes that an SVG draws, with those that it draws again by reference.

use std::collections::{HashMap, hash_map::Entry};

/// The most elements that an SVG draws, each counted as often as it is drawn.
const MAX_DRAWN: u64 = 100_000;
/// The longest chain of references from part to part.
const DEEPEST: usize = 32;

/// The parts of an SVG: the complete image, and each element that has an id.
#[derive(Default)]
pub(super) struct Drawing<'a> {
    parts: Vec<Part<'a>>,
    named: HashMap<&'a str, usize>,
    /// The parts that are open, each with the depth of its element.
    open: Vec<(usize, usize)>,
}

/// Elements that are drawn together, and their references.
#[derive(Default)]
struct Part<'a> {
    elements: u64,
    inside: Vec<usize>,
    used: Vec<Reference<'a>>,
    is_gradient: bool,
}

/// A reference to a part that an element draws besides itself.
#[derive(Clone, Copy)]
pub(super) struct Reference<'a> {
    pub name: &'a str,
    pub times: u64,
    /// Whether all elements inside inherit it as their paint: for gradients alone, which draw nothing.
    pub is_handed_down: bool,
}

impl<'a> Drawing<'a> {
    /// Adds an element at this depth, with the parts that it draws by reference.
    pub fn add(
        &mut self,
        depth: usize,
        id: Option<&'a str>,
        is_gradient: bool,
        used: &[Reference<'a>],
    ) -> Result<(), String> {
        while self.open.last().is_some_and(|(_, around)| *around >= depth) && self.open.len() > 1 {
            self.open.pop();
        }
        if id.is_some() || self.parts.is_empty() {
            let index = self.parts.len();
            self.parts.push(Part { is_gradient, ..Part::default() });
            let outer = self.open.last().and_then(|(outer, _)| self.parts.get_mut(*outer));
            if let Some(outer) = outer {
                outer.inside.push(index);
            }
            match id.map(|id| self.named.entry(id)) {
                Some(Entry::Occupied(_)) => return Err("two parts of the SVG have one id".to_owned()),
                Some(Entry::Vacant(free)) => _ = free.insert(index),
                None => {}
            }
            self.open.push((index, depth));
        }
        let index = self.open.last().map_or(0, |(index, _)| *index);
        if let Some(part) = self.parts.get_mut(index) {
            part.elements += 1;
            part.used.extend(used);
        }
        Ok(())
    }

    /// Refuses an SVG that draws itself or too much.
    pub fn check(&self) -> Result<(), String> {
        let mut handed_down =
            self.parts.iter().flat_map(|part| &part.used).filter(|used| used.is_handed_down);
        let is_none = |used: &Reference<'_>| {
            let named = self.named.get(used.name).and_then(|index| self.parts.get(*index));
            named.is_some_and(|part| !part.is_gradient)
        };
        if handed_down.any(is_none) {
            return Err("an SVG paints with a pattern single shapes alone".to_owned());
        }
        let mut drawn = vec![None; self.parts.len()];
        if self.parts.is_empty() { Ok(()) } else { self.count(0, 0, &mut drawn).map(|_| ()) }
    }

    fn count(&self, index: usize, depth: usize, known: &mut [Option<u64>]) -> Result<u64, String> {
        if let Some(Some(drawn)) = known.get(index) {
            return Ok(*drawn);
        }
        if depth > DEEPEST {
            return Err(format!(
                "the parts of an SVG refer to others in at most {DEEPEST} steps, and never to themselves"
            ));
        }
        let Some(part) = self.parts.get(index) else { return Ok(0) };
        let mut drawn = part.elements;
        let used = part.used.iter().filter_map(|used| Some((*self.named.get(used.name)?, used.times)));
        for (other, times) in part.inside.iter().map(|inside| (*inside, 1)).chain(used) {
            drawn = drawn.saturating_add(self.count(other, depth + 1, known)?.saturating_mul(times));
            if drawn > MAX_DRAWN {
                break;
            }
        }
        if drawn > MAX_DRAWN {
            return Err(format!(
                "an SVG draws at most {MAX_DRAWN} shapes, each as often as it is referred to"
            ));
        }
        if let Some(slot) = known.get_mut(index) {
            *slot = Some(drawn);
        }
        Ok(drawn)
    }
}
