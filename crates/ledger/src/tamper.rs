//! Every change to a valid export is found.

use std::sync::LazyLock;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    Finding, FindingKind as Kind, Frontier, VerifyError, leaf_hash,
    sample::{Change, ORIGIN, Sample, change, entry, id, key_set, note, pair, person, verified},
    verify,
};

static SAMPLES: LazyLock<Vec<(u64, Sample)>> =
    LazyLock::new(|| [40, 256, 257, 300, 600].map(|size| (size, Sample::new(size))).into());

fn changed(line: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut value = serde_json::from_str(line).unwrap();
    change(&mut value);
    value.to_string()
}

fn kinds(findings: &[Finding]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = findings.iter().map(|finding| finding.kind).collect();
    kinds.dedup();
    kinds
}

fn names(findings: &[Finding], position: u64) -> bool {
    findings.iter().any(|one| one.position == Some(position) || one.id == Some(id(position)))
}

#[test]
fn valid_exports_have_no_findings() {
    for size in [0, 1, 32, 255, 256, 257, 512, 600] {
        let sample = Sample::new(size);
        let checkpoints =
            [sample.notes.first(), sample.notes.get(sample.notes.len() / 2), sample.notes.last()];
        for note in [None].into_iter().chain(checkpoints) {
            let (summary, findings) = verified(&sample.lines, note.map(String::as_str));
            assert_eq!(findings, [], "size {size}");
            assert_eq!(summary.entries, size);
            assert_eq!(summary.erased, if size < 32 { 0 } else { 8 });
            assert_eq!(summary.checkpoint, (size > 0).then_some(size));
            assert_eq!(summary.origin, ORIGIN);
        }
    }
}

#[test]
fn a_stored_checkpoint_reveals_rewriting_and_truncation() {
    let (short, long) = (Sample::new(40), &SAMPLES[4].1);
    let (_, findings) = verified(&short.lines, Some(&long.notes[41]));
    assert_eq!((kinds(&findings), findings[0].position), (vec![Kind::Cut], Some(40)));
    let mut other = Frontier::default();
    other.push(leaf_hash(b"another history"));
    let (_, findings) = verified(&short.lines, Some(&note(ORIGIN, &other, &pair(1))));
    assert_eq!(kinds(&findings), [Kind::Root]);
    let (_, findings) = verified(&short.lines, Some(&note("audit.example/other", &other, &pair(1))));
    assert_eq!(kinds(&findings), [Kind::Origin]);
    let unknown = note(ORIGIN, &other, &pair(2));
    let outcome =
        verify(short.lines.join("\n").as_bytes(), &key_set(&[&pair(1)]), Some(&unknown), &mut |_| ());
    assert!(matches!(outcome, Err(VerifyError::Checkpoint(_))));
}

#[test]
fn a_file_that_is_not_an_export_is_an_error() {
    for text in ["", "{}", "{\"end\":0}\n"] {
        let outcome = verify(text.as_bytes(), &key_set(&[]), None, &mut |_| ());
        assert!(matches!(outcome, Err(VerifyError::NotAnExport(_))), "{text}");
    }
}

#[test]
fn the_head_is_compared_with_its_checkpoint() {
    let (size, sample) = &SAMPLES[3];
    let mut other = Frontier::default();
    other.push(leaf_hash(b"x"));
    for (member, value, expected) in [
        ("size", json!(299), Kind::Head),
        ("size", json!(301), Kind::Head),
        ("size", json!(0), Kind::Head),
        ("origin", json!("audit.example/other"), Kind::Origin),
        ("checkpoint", json!(null), Kind::Checkpoint),
        ("checkpoint", json!(sample.notes[300].replace("\n300\n", "\n299\n")), Kind::Checkpoint),
        ("checkpoint", json!(note(ORIGIN, &other, &pair(2))), Kind::Checkpoint),
        ("checkpoint", json!(sample.notes[299]), Kind::Head),
    ] {
        let mut lines = sample.lines.clone();
        lines[0] = changed(&lines[0], |head| head[member] = value.clone());
        let (summary, findings) = verified(&lines, None);
        assert!(kinds(&findings).contains(&expected), "{member} {value}: {findings:?}");
        assert_eq!(summary.entries, *size);
    }
    // entries beyond the checkpoint's size
    let mut lines = sample.lines.clone();
    lines[0] = changed(&lines[0], |head| {
        head["checkpoint"] = json!(sample.notes[298]);
        head["size"] = json!(298);
    });
    let (_, findings) = verified(&lines, None);
    for position in [298, 299] {
        assert!(findings.iter().any(|one| one.kind == Kind::Inserted && one.id == Some(id(position))));
    }
}

#[test]
fn a_signer_cannot_rewrite_a_trail_under_its_checkpoint() {
    let mut lines = SAMPLES[0].1.lines.clone();
    let (value, leaf) = entry(id(8), &Change { action: "Deleted", ..change(8) }, &pair(1));
    lines[1] = changed(&lines[1], |tile| tile["leaves"][8] = json!(BASE64_STANDARD.encode(leaf)));
    // serde_json sorts the members, but a tile's line begins with its number
    lines[1] = format!("{{\"tile\":0,{}}}", &lines[1][1..lines[1].rfind(",\"tile\"").unwrap()]);
    lines[Sample::line(8)] = changed(&value.to_string(), |entry| entry["position"] = json!(8));
    assert_eq!(kinds(&verified(&lines, None).1), [Kind::Root]);
}

#[test]
fn faults_of_tiles_are_distinguished_from_faults_of_entries() {
    let sample = &SAMPLES[4].1;
    let second = Sample::line(256) - 1;
    let find = |lines: &[String]| verified(lines, None).1;
    // one hash
    let mut lines = sample.lines.clone();
    let other = BASE64_STANDARD.encode([9; 32]);
    let at = "{\"tile\":1,\"leaves\":[\"".len() + 47 * 3;
    lines[second].replace_range(at..at + 44, &other);
    let findings = find(&lines);
    assert_eq!(kinds(&findings), [Kind::Altered, Kind::Tile]);
    assert!(names(&findings, 259) && findings[0].detail.contains("signature holds"));
    assert!(findings[1].detail.contains("the entries themselves do"));
    // the line
    let mut lines = sample.lines.clone();
    let tile = lines.remove(second);
    let findings = find(&lines);
    assert_eq!((kinds(&findings), findings.len(), findings[0].position), (vec![Kind::Tile], 1, Some(256)));
    // the line is present twice, or too late
    lines.insert(second - 4, tile.clone());
    lines.insert(second + 1, tile);
    assert!(kinds(&find(&lines)).contains(&Kind::Tile));
    // a hash too few
    let mut lines = sample.lines.clone();
    lines[second].replace_range(at..at + 47, "");
    let findings = find(&lines);
    assert_eq!((kinds(&findings), findings.len(), findings[0].position), (vec![Kind::Tile], 1, Some(256)));
    // the complete tile
    let mut lines = sample.lines.clone();
    lines.drain(second..second + 257);
    let findings = find(&lines);
    assert_eq!((kinds(&findings), findings.len(), findings[0].position), (vec![Kind::Tile], 1, Some(256)));
    // a tile of another tree
    let mut lines = sample.lines.clone();
    lines.insert(lines.len() - 1, lines[second].replace("\"tile\":1", "\"tile\":18446744073709551615"));
    assert_eq!(kinds(&find(&lines)), [Kind::Tile]);
}

#[test]
fn a_truncation_is_reported_at_its_position() {
    for (size, sample, cuts) in [(40, &SAMPLES[0].1, 1..42), (600, &SAMPLES[4].1, 255..262)] {
        for left in cuts {
            let (_, findings) = verified(&sample.lines[..left], None);
            let cut: Vec<&Finding> = findings.iter().filter(|one| one.kind == Kind::Cut).collect();
            assert_eq!(cut.len(), 1, "{left}: {findings:?}");
            let position = (0..size).find(|position| Sample::line(*position) >= left);
            assert_eq!(cut[0].position, position, "{left}");
            let others = findings.iter().filter(|one| !matches!(one.kind, Kind::Cut | Kind::Erasure));
            assert_eq!(others.count(), 0, "{left}: {findings:?}");
        }
    }
    let sample = &SAMPLES[4].1;
    let mut lines = sample.lines.clone();
    lines.truncate(Sample::line(256) - 1);
    lines.push("{\"end\":256}".to_owned());
    let (_, findings) = verified(&lines, None);
    assert_eq!((kinds(&findings), findings[1].position), (vec![Kind::Cut], Some(256)));
}

#[test]
fn contents_are_erased_only_with_their_person() {
    let sample = &SAMPLES[0].1;
    let erase = |lines: &mut Vec<String>, position: u64| {
        let line = &mut lines[Sample::line(position)];
        *line = changed(line, |entry| {
            for member in ["originalContent", "currentContent", "originalSalt", "currentSalt"] {
                entry[member] = Value::Null;
            }
        });
    };
    for (position, expected) in [(22, Kind::Erasure), (33, Kind::Erasure), (34, Kind::Content)] {
        let mut lines = sample.lines.clone();
        erase(&mut lines, position);
        let (_, findings) = verified(&lines, None);
        assert_eq!((kinds(&findings), findings[0].position), (vec![expected], Some(position)));
    }
    // without the deletion of person 0, all its erasures are reported
    let mut lines = sample.lines.clone();
    lines.remove(Sample::line(30));
    let (_, findings) = verified(&lines, None);
    let reported: Vec<_> = findings.iter().map(|one| (one.kind, one.position.unwrap())).collect();
    let erasures = [2, 4, 12, 14, 20].map(|position| (Kind::Erasure, position));
    assert_eq!(reported, [&[(Kind::Removed, 30)][..], &erasures].concat());
    assert!(findings[1].detail.contains(&person(0)));
    // an entry without a valid signature excuses no erasure
    let line = &mut lines[Sample::line(29)];
    *line = changed(line, |entry| {
        entry["action"] = json!("Deleted");
        entry["primaryKey"] = json!(person(0));
    });
    assert!(kinds(&verified(&lines, None).1).contains(&Kind::Erasure));
}

/// A person whose id is the prefix of the key is not part of the leaf. Without the member the entry has no
/// person, and is not the original: whether or not its contents are erased.
#[test]
fn an_entry_whose_person_was_removed_is_reported() {
    let sample = &SAMPLES[0].1;
    for position in [2, 20, 22, 33] {
        let mut lines = sample.lines.clone();
        let line = &mut lines[Sample::line(position)];
        *line = changed(line, |entry| entry["person"] = Value::Null);
        let (_, findings) = verified(&lines, None);
        assert_eq!((kinds(&findings), findings[0].position), (vec![Kind::Altered], Some(position)));
    }
}

/// Exports of the release before the member do not have it. Where other entries have it, no entry may lack it.
#[test]
fn an_entry_that_lacks_the_person_member_is_reported() {
    let sample = &SAMPLES[0].1;
    for position in [2, 20] {
        let mut lines = sample.lines.clone();
        let line = &mut lines[Sample::line(position)];
        *line = changed(line, |entry| drop(entry.as_object_mut().unwrap().remove("person")));
        let (_, findings) = verified(&lines, None);
        assert_eq!((kinds(&findings), findings[0].position), (vec![Kind::Malformed], Some(position)));
    }
}

#[test]
fn content_cannot_be_passed_off_as_salt() {
    let mut lines = SAMPLES[0].1.lines.clone();
    let line = &mut lines[Sample::line(33)];
    *line = changed(line, |entry| {
        let content = entry["currentContent"].as_str().unwrap().to_owned();
        let salt = BASE64_STANDARD.decode(entry["currentSalt"].as_str().unwrap()).unwrap();
        entry["currentSalt"] = json!(BASE64_STANDARD.encode([&salt, &content.as_bytes()[..5]].concat()));
        entry["currentContent"] = json!(content[5..]);
    });
    let (_, findings) = verified(&lines, None);
    assert_eq!((kinds(&findings), findings[0].position), (vec![Kind::Content], Some(33)));
}

#[test]
fn exactly_the_swapped_entries_are_reported() {
    let sample = &SAMPLES[4].1;
    for (one, other) in [(8, 9), (8, 10), (3, 200), (255, 256), (10, 500)] {
        let mut lines = sample.lines.clone();
        lines.swap(Sample::line(one), Sample::line(other));
        let (_, findings) = verified(&lines, None);
        let named: Vec<u64> = findings.iter().filter_map(|finding| finding.position).collect();
        assert!(named.contains(&one) && named.contains(&other), "{findings:?}");
        assert!(named.iter().all(|position| [one, other].contains(position)), "{findings:?}");
        assert!(kinds(&findings).contains(&Kind::Reordered));
    }
}

/// A change to one entry. The numbers select one of the existing members or positions.
#[derive(Clone, Debug)]
enum Tampering {
    Change(usize),
    Blank(usize),
    Drop,
    Duplicate(usize),
    Swap(u64),
    SwapContent(u64),
    Insert(u64),
    Resign(bool),
    Break(usize),
    Move(u64),
}

fn tampering() -> impl Strategy<Value = Tampering> {
    use Tampering as T;
    let any_number = any::<u64>();
    prop_oneof![
        6 => (0..18_usize).prop_map(T::Change),
        3 => (0..18_usize).prop_map(T::Blank),
        1 => Just(T::Drop),
        1 => any::<usize>().prop_map(T::Duplicate),
        2 => any_number.prop_map(T::Swap),
        1 => any_number.prop_map(T::SwapContent),
        2 => any_number.prop_map(T::Insert),
        1 => any::<bool>().prop_map(T::Resign),
        1 => any::<usize>().prop_map(T::Break),
        1 => any_number.prop_map(T::Move),
    ]
}

const MEMBERS: [&str; 18] = [
    "id",
    "timestamp",
    "user",
    "area",
    "primaryKey",
    "category",
    "action",
    "dataSource",
    "person",
    "originalContent",
    "currentContent",
    "originalSalt",
    "currentSalt",
    "originalDigest",
    "currentDigest",
    "signature",
    "signaturePublicKeyInfo",
    "position",
];

/// Changes a member to another value of the same form.
fn change_member(value: &mut Value) {
    *value = match value.take() {
        Value::Null => json!("x"),
        Value::Number(number) => json!(number.as_i64().unwrap() + 1),
        Value::String(text) => {
            // a digit of a number, a letter of a word
            let at = text.char_indices().rev().find(|(_, sign)| sign.is_ascii_alphanumeric());
            let (at, sign) = at.unwrap_or_default();
            let other = if sign == '7' { "6" } else { "7" };
            json!(format!("{}{other}{}", &text[..at], &text[at + 1..]))
        }
        other => panic!("{other}"),
    };
}

/// Returns `false` when nothing was changed.
fn tamper(lines: &mut Vec<String>, size: u64, position: u64, tampering: &Tampering) -> bool {
    let at = Sample::line(position);
    let with_position = |value: &Value, position: u64| {
        changed(&value.to_string(), |entry| entry["position"] = json!(position))
    };
    match *tampering {
        Tampering::Change(member) => {
            lines[at] = changed(&lines[at], |entry| change_member(&mut entry[MEMBERS[member]]));
        }
        Tampering::Blank(member) => {
            let entry: Value = serde_json::from_str(&lines[at]).unwrap();
            let was = entry[MEMBERS[member]].clone();
            lines[at] = changed(&lines[at], |entry| entry[MEMBERS[member]] = Value::Null);
            return !was.is_null();
        }
        Tampering::Drop => drop(lines.remove(at)),
        Tampering::Duplicate(to) => {
            let copy = lines[at].clone();
            lines.insert(1 + to % lines.len(), copy);
        }
        Tampering::Swap(other) => lines.swap(at, Sample::line(other % size)),
        Tampering::SwapContent(other) => {
            // the positions stay in order
            let (one, other) = (position, other % size);
            let read = |at: u64| serde_json::from_str::<Value>(&lines[Sample::line(at)]).unwrap();
            let (left, right) = (read(one), read(other));
            lines[at] = with_position(&right, one);
            lines[Sample::line(other)] = with_position(&left, other);
            return one != other;
        }
        Tampering::Insert(to) => {
            let new =
                Change { area: "Group", key: person(7), action: "Modified", person: None, erased: false };
            let (value, _) = entry(id(position) + 1, &new, &pair(1));
            let line = with_position(&value, position);
            lines.insert(1 + usize::try_from(to % lines.len() as u64).unwrap(), line);
        }
        Tampering::Resign(known) => {
            let (value, _) = entry(id(position), &change(position), &pair(2));
            lines[at] = changed(&lines[at], |entry| {
                entry["signature"] = value["signature"].clone();
                if !known {
                    entry["signaturePublicKeyInfo"] = value["signaturePublicKeyInfo"].clone();
                }
            });
        }
        Tampering::Break(to) => {
            let end = (0..=to % lines[at].len()).rev().find(|end| lines[at].is_char_boundary(*end));
            lines[at].truncate(end.unwrap_or_default());
        }
        Tampering::Move(to) => {
            let line = lines.remove(at);
            let to = 1 + usize::try_from(to % (lines.len() as u64 - 1)).unwrap();
            lines.insert(to, line);
            return to != at;
        }
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_tampering_with_an_entry_is_reported_with_its_position(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        tampering in tampering(),
    ) {
        let (size, sample) = which.get(&SAMPLES);
        let position = at.index(usize::try_from(*size).unwrap()) as u64;
        let mut lines = sample.lines.clone();
        prop_assume!(tamper(&mut lines, *size, position, &tampering) && lines != sample.lines);
        let (_, findings) = verified(&lines, None);
        let inserted = matches!(tampering, Tampering::Insert(_))
            && findings.iter().any(|one| one.id == Some(id(position) + 1));
        prop_assert!(inserted || names(&findings, position), "{position}: {findings:?}");
        // one change is not reported as many
        prop_assert!(findings.len() < 270, "{findings:?}");
    }
}
