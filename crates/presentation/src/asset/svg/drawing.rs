//! How much an SVG draws, with what it draws again by reference.

use std::collections::HashMap;

/// The most elements that an SVG draws, each as often as it is drawn.
const MAX_DRAWN: u64 = 100_000;
/// How deep references may lead from one part to the next.
const DEEPEST: usize = 32;

/// The parts of an SVG: the whole, and each element that has an id.
#[derive(Default)]
pub(super) struct Drawing<'a> {
    parts: Vec<Part<'a>>,
    named: HashMap<&'a str, Vec<usize>>,
    /// The parts that are open, each with how deep its element is.
    open: Vec<(usize, usize)>,
}

/// Elements that are drawn together, and what they draw besides.
#[derive(Default)]
struct Part<'a> {
    elements: u64,
    inside: Vec<usize>,
    used: Vec<&'a str>,
}

impl<'a> Drawing<'a> {
    /// Takes note of an element with so many others around it.
    pub fn add(&mut self, depth: usize, id: Option<&'a str>, used: &[&'a str]) {
        while self.open.last().is_some_and(|(_, around)| *around >= depth) && self.open.len() > 1 {
            self.open.pop();
        }
        if id.is_some() || self.parts.is_empty() {
            let place = self.parts.len();
            self.parts.push(Part::default());
            let outer = self.open.last().and_then(|(outer, _)| self.parts.get_mut(*outer));
            if let Some(outer) = outer {
                outer.inside.push(place);
            }
            if let Some(id) = id {
                self.named.entry(id).or_default().push(place);
            }
            self.open.push((place, depth));
        }
        let place = self.open.last().map_or(0, |(place, _)| *place);
        if let Some(part) = self.parts.get_mut(place) {
            part.elements += 1;
            part.used.extend(used);
        }
    }

    /// Refuses what draws itself or too much.
    pub fn check(&self) -> Result<(), String> {
        let mut drawn = vec![None; self.parts.len()];
        let drawn = if self.parts.is_empty() { 0 } else { self.count(0, 0, &mut drawn)? };
        if drawn > MAX_DRAWN {
            return Err(format!(
                "an SVG draws at most {MAX_DRAWN} shapes, each as often as it is referred to"
            ));
        }
        Ok(())
    }

    fn count(&self, place: usize, depth: usize, known: &mut [Option<u64>]) -> Result<u64, String> {
        if let Some(Some(drawn)) = known.get(place) {
            return Ok(*drawn);
        }
        if depth > DEEPEST {
            return Err(format!(
                "the parts of an SVG refer to others in at most {DEEPEST} steps, and never to themselves"
            ));
        }
        let Some(part) = self.parts.get(place) else { return Ok(0) };
        let mut drawn = part.elements;
        let used = part.used.iter().filter_map(|name| self.named.get(name)).flatten();
        for other in part.inside.iter().chain(used) {
            drawn = drawn.saturating_add(self.count(*other, depth + 1, known)?);
        }
        if let Some(slot) = known.get_mut(place) {
            *slot = Some(drawn);
        }
        Ok(drawn)
    }
}
