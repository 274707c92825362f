//! Members with several texts: a list, or texts by names. They are stored as their JSON.

use crate::{Json, TextRule, Value, read_json};

/// The rule of a list of texts.
#[derive(Debug)]
pub struct ListRule {
    /// The rule of each text.
    pub item: &'static TextRule,
    /// The maximum number.
    pub most: usize,
}

/// The rule of texts by names. A null value is a value that is not shown.
#[derive(Debug)]
pub struct PairsRule {
    /// The rule of a name.
    pub name: &'static TextRule,
    /// The rule of a value.
    pub value: &'static TextRule,
    /// The maximum number.
    pub most: usize,
}

impl ListRule {
    /// Reads a list of a body; `Err` contains the reason of a refusal. A duplicate text counts once.
    pub(crate) fn read(&self, items: &[Json]) -> Result<Value, String> {
        if items.len() > self.most {
            return Err(format!("takes at most {} texts, not {}", self.most, items.len()));
        }
        let mut read: Vec<String> = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let Json::Text(text) = item else {
                return Err(format!("must hold strings alone: see [{index}]"));
            };
            let text = self.item.check(text.clone()).map_err(|wrong| format!("[{index}] {wrong}"))?;
            if !read.contains(&text) {
                read.push(text);
            }
        }
        Ok(list_value(&read))
    }
}

impl PairsRule {
    /// Reads texts by names of a body; `Err` contains the reason of a refusal.
    pub(crate) fn read(&self, members: &[(String, Json)]) -> Result<Value, String> {
        if members.len() > self.most {
            return Err(format!("takes at most {} members, not {}", self.most, members.len()));
        }
        let mut read = Vec::with_capacity(members.len());
        for (name, value) in members {
            let wrong = |wrong| format!("{name:?} {wrong}");
            let name = self.name.check(name.clone()).map_err(wrong)?;
            let value = match value {
                Json::Null => None,
                Json::Text(text) => Some(self.value.check(text.clone()).map_err(wrong)?),
                _ => return Err(format!("{name:?} must be a string, or null to keep what is there")),
            };
            if read.iter().any(|(known, _): &(String, _)| known.eq_ignore_ascii_case(&name)) {
                return Err(format!("{name:?} is there twice"));
            }
            read.push((name, value));
        }
        Ok(pairs_value(&read))
    }
}

/// The stored form of texts.
pub fn list_value(texts: &[String]) -> Value {
    Value::Text(serde_json::Value::from(texts).to_string())
}

/// The texts of a stored list; `None` where it is none.
pub fn list_of(stored: &str) -> Option<Vec<String>> {
    let Json::Array(items) = read_json(stored.as_bytes()).ok()? else { return None };
    items.into_iter().map(|item| if let Json::Text(text) = item { Some(text) } else { None }).collect()
}

/// The stored form of texts by names.
pub fn pairs_value(pairs: &[(String, Option<String>)]) -> Value {
    let members = pairs.iter().map(|(name, value)| (name.clone(), value.clone().into()));
    Value::Text(serde_json::Value::Object(members.collect()).to_string())
}

/// The stored texts by their names; `None` where it is no such object.
pub fn pairs_of(stored: &str) -> Option<Vec<(String, Option<String>)>> {
    let Json::Object(members) = read_json(stored.as_bytes()).ok()? else { return None };
    let pairs = members.into_iter().map(|(name, value)| match value {
        Json::Text(text) => Some((name, Some(text))),
        Json::Null => Some((name, None)),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::{ListRule, PairsRule, list_of, pairs_of};
    use crate::{Json, Key, ShortText, Value, read_json};

    const LIST: ListRule = ListRule { item: &Key::RULE, most: 2 };
    const PAIRS: PairsRule = PairsRule { name: &Key::RULE, value: &ShortText::RULE, most: 2 };

    fn list(json: &str) -> Result<Value, String> {
        let Json::Array(items) = read_json(json.as_bytes()).unwrap() else { panic!("{json}") };
        LIST.read(&items)
    }

    fn pairs(json: &str) -> Result<Value, String> {
        let Json::Object(members) = read_json(json.as_bytes()).unwrap() else { panic!("{json}") };
        PAIRS.read(&members)
    }

    #[test]
    fn a_list_holds_texts_once() {
        assert_eq!(list(r#"["b","a"]"#), Ok(Value::from(r#"["b","a"]"#)));
        assert_eq!(list(r#"["b","b"]"#), Ok(Value::from(r#"["b"]"#)));
        for wrong in [r#"["a","b","c"]"#, r#"["a",1]"#, r#"[""]"#] {
            assert!(list(wrong).is_err(), "{wrong}");
        }
        assert_eq!(list_of(r#"["b","a"]"#).unwrap(), ["b", "a"]);
        assert!(list_of("{}").is_none() && list_of("[1]").is_none());
    }

    #[test]
    fn texts_have_names_once() {
        assert_eq!(pairs(r#"{"b":"1","a":null}"#), Ok(Value::from(r#"{"a":null,"b":"1"}"#)));
        for wrong in [r#"{"a":"1","A":"2"}"#, r#"{"a":1}"#, r#"{"":"1"}"#, r#"{"a":"","b":"","c":""}"#] {
            assert!(pairs(wrong).is_err(), "{wrong}");
        }
        let read = pairs_of(r#"{"a":null,"b":"1"}"#).unwrap();
        assert_eq!(read, [("a".to_owned(), None), ("b".to_owned(), Some("1".to_owned()))]);
    }
}
