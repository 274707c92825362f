//! References in a circle: two people who are each other's managers. What comes later is left out at first, and added when
//! all are there.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::REFERENCE;

const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

/// A reference that was taken out of a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    /// The bulkId that it names.
    pub to: String,
    is_manager: bool,
}

impl Link {
    /// The patch that adds it, once what it names has this id.
    pub fn patch(&self, id: &str) -> Value {
        let operation = if self.is_manager {
            json!({ "op": "add", "path": format!("{ENTERPRISE}:manager"), "value": id })
        } else {
            json!({ "op": "add", "path": "members", "value": [{ "value": id }] })
        };
        json!({ "Operations": [operation] })
    }
}

/// Takes out the references to what is not made yet.
pub fn take_out(data: &mut Value, unmade: &BTreeSet<String>) -> Vec<Link> {
    let named = |value: &Value| {
        let text = value.as_str().or_else(|| value.get("value")?.as_str())?;
        text.strip_prefix(REFERENCE).filter(|id| unmade.contains(*id)).map(str::to_owned)
    };
    let mut links = Vec::new();
    if let Some(Value::Array(members)) = data.get_mut("members") {
        members.retain(|member| {
            let to = named(member);
            links.extend(to.clone().map(|to| Link { to, is_manager: false }));
            to.is_none()
        });
    }
    if let Some(Value::Object(own)) = data.get_mut(ENTERPRISE)
        && let Some(to) = own.get("manager").and_then(named)
    {
        own.remove("manager");
        links.push(Link { to, is_manager: true });
    }
    links
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::{ENTERPRISE, take_out};

    #[test]
    fn what_is_not_there_yet_is_taken_out() {
        let mut data =
            json!({ "members": [{ "value": "bulkId:a" }, { "value": "bulkId:b" }, { "value": "7" }] });
        data[ENTERPRISE] = json!({ "manager": { "value": "bulkId:a" }, "department": "x" });
        let links = take_out(&mut data, &BTreeSet::from(["a".to_owned()]));
        assert_eq!(links.iter().map(|link| link.to.as_str()).collect::<Vec<_>>(), ["a", "a"]);
        assert_eq!(data["members"], json!([{ "value": "bulkId:b" }, { "value": "7" }]));
        assert_eq!(data[ENTERPRISE], json!({ "department": "x" }));
        assert_eq!(links[0].patch("1")["Operations"][0]["value"], json!([{ "value": "1" }]));
    }
}
