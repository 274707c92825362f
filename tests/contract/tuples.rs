//! Parameters are named one by one, or in a struct: tuples hide what a caller passes. No function has a tuple
//! among its parameters.

use crate::sources::assert_none;

#[test]
fn functions_take_no_tuples() {
    assert_none("name the parameters of these functions", |path, text| {
        with_tuples(text).into_iter().map(|name| format!("{}: {name}", path.display())).collect()
    });
}

/// The names of the functions in code with a parameter whose pattern is a tuple, except those of properties (`in`).
fn with_tuples(text: &str) -> Vec<String> {
    let code: String = text.lines().flat_map(|line| [line.split("//").next().unwrap(), "\n"]).collect();
    let functions = code.split("fn ").skip(1).filter_map(|rest| {
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
        let (name, rest) = rest.split_at(end);
        let parameters = parameters(rest)?;
        parameters
            .iter()
            .any(|one| one.trim_start().starts_with('(') && !one.contains(") in "))
            .then(|| name.to_owned())
    });
    functions.collect()
}

/// The parameters of a function, from the end of its name.
fn parameters(text: &str) -> Option<Vec<&str>> {
    // the depth of brackets, and that of angle brackets: the generics of the function precede the parameters
    let (mut brackets, mut angles, mut begin) = (0, 0, None);
    let (mut all, mut before) = (Vec::new(), ' ');
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => angles += 1,
            '>' if before != '-' => angles -= 1,
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            _ => {}
        }
        match begin {
            None if letter == '(' && angles == 0 => begin = Some(at + 1),
            None if angles == 0 && letter != '>' => return None,
            Some(from) if brackets == 0 || (letter == ',' && brackets == 1 && angles == 0) => {
                all.push(&text[from..at]);
                begin = Some(at + 1);
                if brackets == 0 {
                    return Some(all);
                }
            }
            _ => {}
        }
        before = letter;
    }
    None
}

#[test]
fn only_patterns_of_parameters_are_counted() {
    let code = "fn one((a, b): (u8, u8)) {}\n\
        fn two<F: Fn(u8, u8) -> u8>(of: F, c: (u8, u8)) -> (u8, u8) { fn three(\n    d: u8,\n    (_, e): Pair,\n) {} }\n\
        // fn four((a, b): Pair)\n\
        fn five(f: HashMap<u8, (u8, u8)>, g: fn(u8) -> u8) {}";
    assert_eq!(with_tuples(code), ["one", "three"]);
}
