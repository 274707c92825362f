//! Building a statement: text and parameters grow together, so that they always agree.

use chancery_record::Value;

/// A statement under construction.
#[derive(Clone, Debug, Default)]
pub struct Sql {
    /// The text so far, with `?1`, `?2`.
    pub text: String,
    /// The values of its parameters.
    pub parameters: Vec<Value>,
}

impl Sql {
    /// A statement that begins with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), parameters: Vec::new() }
    }

    /// Adds text. It must not come from a caller: callers' values are bound.
    #[must_use]
    pub fn push(mut self, text: &str) -> Self {
        self.add(text);
        self
    }

    /// Adds a parameter.
    #[must_use]
    pub fn bind(mut self, value: impl Into<Value>) -> Self {
        self.add_bound(value);
        self
    }

    /// Adds text, in place.
    pub fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a parameter, in place.
    pub fn add_bound(&mut self, value: impl Into<Value>) {
        self.parameters.push(value.into());
        let number = self.parameters.len();
        self.text.push('?');
        self.text.push_str(&number.to_string());
    }

    /// Adds `(?4, ?5, ...)`. The list is padded to one of a few lengths by repeating its last value, so that
    /// few different statements are prepared. An empty list matches nothing.
    pub fn add_list(&mut self, values: impl IntoIterator<Item = Value>) {
        let mut values: Vec<Value> = values.into_iter().collect();
        let length = LIST_LENGTHS.iter().find(|length| **length >= values.len());
        if let (Some(length), Some(last)) = (length, values.last().cloned()) {
            values.resize(*length, last);
        }
        if values.is_empty() {
            return self.add("(NULL)");
        }
        self.add("(");
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.add(", ");
            }
            self.add_bound(value);
        }
        self.add(")");
    }
}

/// The most values that one list holds.
pub const LIST: usize = 512;
const LIST_LENGTHS: [usize; 4] = [1, 8, 64, LIST];
