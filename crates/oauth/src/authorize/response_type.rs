//! What an authorization endpoint answers with (OAuth 2.0 Multiple Response Type Encoding Practices 1.0).

/// A response type: what is in the answer. Of the eight, `none` has nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResponseType {
    /// Whether the answer has a code.
    pub code: bool,
    /// Whether the answer has an ID token.
    pub id_token: bool,
    /// Whether the answer has an access token.
    pub token: bool,
}

impl ResponseType {
    /// All response types.
    pub const ALL: [Self; 8] = [
        Self { code: true, id_token: false, token: false },
        Self { code: true, id_token: true, token: false },
        Self { code: true, id_token: true, token: true },
        Self { code: true, id_token: false, token: true },
        Self { code: false, id_token: true, token: false },
        Self { code: false, id_token: true, token: true },
        Self { code: false, id_token: false, token: true },
        Self { code: false, id_token: false, token: false },
    ];

    /// The response type's name, its words sorted.
    pub const fn name(self) -> &'static str {
        match (self.code, self.id_token, self.token) {
            (true, false, false) => "code",
            (true, true, false) => "code id_token",
            (true, true, true) => "code id_token token",
            (true, false, true) => "code token",
            (false, true, false) => "id_token",
            (false, true, true) => "id_token token",
            (false, false, true) => "token",
            (false, false, false) => "none",
        }
    }

    /// The response type of that name, its words in any order (RFC 6749, section 3.1.1).
    pub fn named(name: &str) -> Option<Self> {
        let mut words: Vec<&str> = name.split(' ').collect();
        words.sort_unstable();
        let sorted = words.join(" ");
        Self::ALL.into_iter().find(|known| known.name() == sorted)
    }

    /// Whether a token is in the answer itself, which must then not be in a query: those get into logs and
    /// histories.
    pub const fn has_front_channel_token(self) -> bool {
        self.id_token || self.token
    }

    /// What the answer to a response type that is not known would have had: its sender reads answers as those
    /// of the known words in it.
    pub(crate) fn resembling(name: &str) -> Self {
        let has = |word: &str| name.split(' ').any(|found| found == word);
        Self { code: has("code"), id_token: has("id_token"), token: has("token") }
    }
}

#[cfg(test)]
mod tests {
    use super::ResponseType;

    #[test]
    fn the_eight_are_read_in_any_order() {
        for known in ResponseType::ALL {
            assert_eq!(ResponseType::named(known.name()), Some(known));
            let turned: Vec<&str> = known.name().split(' ').rev().collect();
            assert_eq!(ResponseType::named(&turned.join(" ")), Some(known));
        }
        for wrong in ["", " ", "code code", "none code", "Code", "code  token", "code,token", "code ", "saml"]
        {
            assert_eq!(ResponseType::named(wrong), None, "{wrong}");
        }
    }
}
