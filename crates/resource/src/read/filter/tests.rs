//! What the parser accepts, and the columns of problems.

use super::{Expression, Literal, Operator, parse};

fn compare(attribute: &str, operator: Operator, value: Literal, column: usize) -> Expression {
    Expression::Compare { attribute: attribute.into(), part: None, operator, value, column }
}

#[test]
fn and_binds_stronger_than_or() {
    let a = || Box::new(compare("a", Operator::Present, Literal::Null, 1));
    let read = parse("a pr or b eq 1 and c ne null").unwrap();
    let Expression::Or(left, right) = read else { panic!() };
    assert_eq!(left, a());
    assert!(matches!(*right, Expression::And(..)));
}

#[test]
fn strings_are_json() {
    let read = parse(r#"name EQ "a\"\u00fc \\""#).unwrap();
    assert_eq!(read, compare("name", Operator::Equal, Literal::Text("a\"ü \\".into()), 1));
}

#[test]
fn nested_arrays_and_parts() {
    assert!(matches!(parse("groups[name sw \"x\" and id pr]"), Ok(Expression::Some { .. })));
    let read = parse("not (groups.id eq \"x\")").unwrap();
    assert!(matches!(read, Expression::Not(_)));
}

#[test]
fn a_sub_attribute_may_follow_a_bracket() {
    let one = parse(r#"emails[type eq "work"].value sw "a""#).unwrap();
    let Expression::Some { inner, .. } = one else { panic!() };
    let Expression::And(left, right) = *inner else { panic!() };
    assert_eq!(*left, compare("type", Operator::Equal, Literal::Text("work".into()), 8));
    assert_eq!(*right, compare("value", Operator::StartsWith, Literal::Text("a".into()), 24));
    assert!(parse("emails[type pr]. pr").is_err());
}

#[test]
fn an_attribute_may_follow_a_urn() {
    let urn = "urn:ietf:params:scim:schemas:core:2.0:User";
    let read = parse(&format!("{urn}:userName pr")).unwrap();
    assert_eq!(read, compare(&format!("{urn}:userName"), Operator::Present, Literal::Null, 1));
    let Ok(Expression::Compare { attribute, part, .. }) = parse(&format!("{urn}:name.familyName pr")) else {
        panic!()
    };
    assert_eq!((attribute, part.as_deref()), (format!("{urn}:name"), Some("familyName")));
    assert!(matches!(parse(&format!("{urn}:emails[type pr]")), Ok(Expression::Some { .. })));
}

#[test]
fn problems_point_at_the_column() {
    for (filter, column) in [
        ("", 1),
        ("a", 2),
        ("a eq", 5),
        ("a xx 1", 3),
        ("(a pr", 6),
        ("a pr b", 6),
        ("a eq \"x", 6),
        ("ü pr", 1),
        ("a eq 1.5", 7),
        ("a eq \"\\ud800\"", 6),
    ] {
        let problem = parse(filter).unwrap_err();
        assert!(problem.detail.contains(&format!("column {column}:")), "{filter}: {}", problem.detail);
    }
}

#[test]
fn hostile_filters_are_bounded() {
    assert!(parse(&"(".repeat(4000)).is_err());
    assert!(parse(&vec!["a pr"; 101].join(" or ")).is_err());
    assert!(parse(&"a".repeat(9000)).is_err());
    assert!(parse(&"a[".repeat(1000)).is_err());
}

use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

/// A filter as text, fully bracketed.
fn rendered(expression: &Expression) -> String {
    match expression {
        Expression::And(left, right) => format!("({} and {})", rendered(left), rendered(right)),
        Expression::Or(left, right) => format!("({} OR {})", rendered(left), rendered(right)),
        Expression::Not(inner) => format!("not ({})", rendered(inner)),
        Expression::Some { attribute, inner, .. } => format!("{attribute}[{}]", rendered(inner)),
        Expression::Compare { attribute, part, operator, value, .. } => {
            let (word, _) = super::OPERATORS.iter().find(|(_, known)| known == operator).unwrap();
            let part = part.as_ref().map_or_else(String::new, |part| format!(".{part}"));
            let value = match value {
                Literal::Null if *operator == Operator::Present => String::new(),
                Literal::Null => " null".into(),
                Literal::Bool(value) => format!(" {value}"),
                Literal::Int(value) => format!(" {value}"),
                Literal::Text(text) => format!(" {}", serde_json::to_string(text).unwrap()),
            };
            format!("{attribute}{part} {word}{value}")
        }
    }
}

fn literals() -> impl Strategy<Value = Literal> {
    use proptest::prelude::{Just, prop_oneof};
    prop_oneof![
        Just(Literal::Null),
        any::<bool>().prop_map(Literal::Bool),
        any::<i64>().prop_map(Literal::Int),
        "[^\\x00]{0,12}".prop_map(Literal::Text),
    ]
}

fn expressions() -> impl Strategy<Value = Expression> {
    use proptest::prelude::prop_oneof;
    let name = "[a-z][a-zA-Z]{3,9}";
    let operators = (0..super::OPERATORS.len()).prop_map(|index| super::OPERATORS[index].1);
    let leaf = (name, proptest::option::of(name), operators, literals()).prop_map(
        |(attribute, part, operator, value)| {
            let value = if operator == Operator::Present { Literal::Null } else { value };
            Expression::Compare { attribute, part, operator, value, column: 0 }
        },
    );
    leaf.prop_recursive(4, 24, 2, move |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            pair.clone().prop_map(|(left, right)| Expression::And(Box::new(left), Box::new(right))),
            pair.prop_map(|(left, right)| Expression::Or(Box::new(left), Box::new(right))),
            inner.clone().prop_map(|inner| Expression::Not(Box::new(inner))),
            (name, inner).prop_map(|(attribute, inner)| Expression::Some {
                attribute,
                inner: Box::new(inner),
                column: 0
            }),
        ]
    })
}

/// The same tree with every column 0.
fn without_columns(expression: Expression) -> Expression {
    let boxed = |inner: Box<Expression>| Box::new(without_columns(*inner));
    match expression {
        Expression::And(left, right) => Expression::And(boxed(left), boxed(right)),
        Expression::Or(left, right) => Expression::Or(boxed(left), boxed(right)),
        Expression::Not(inner) => Expression::Not(boxed(inner)),
        Expression::Some { attribute, inner, .. } => {
            Expression::Some { attribute, inner: boxed(inner), column: 0 }
        }
        Expression::Compare { attribute, part, operator, value, .. } => {
            Expression::Compare { attribute, part, operator, value, column: 0 }
        }
    }
}

proptest! {
    #[test]
    fn a_rendered_filter_parses_to_the_same_tree(expression in expressions()) {
        let read = parse(&rendered(&expression));
        prop_assert!(read.is_ok(), "{}: {:?}", rendered(&expression), read);
        prop_assert_eq!(without_columns(read.unwrap()), expression);
    }

    #[test]
    fn no_input_panics(text in "[ a-z()\\[\\].\"\\\\0-9ü]{0,60}|\\PC{0,40}") {
        if let Err(problem) = parse(&text) {
            prop_assert!(problem.detail.contains("column"));
        }
    }
}
