//! Lays an author's changes over a template: blocks of lines under the same keys, without a parser
//! of YAML. So the template keeps its comments.

use super::names::nearest;
use std::{iter, mem};

/// A key of a mapping with the lines that belong to it.
struct Block<'t> {
    key: &'t str,
    /// Comments and empty lines before the key.
    lead: Vec<&'t str>,
    line: &'t str,
    /// The lines below the key.
    body: Vec<&'t str>,
}

impl<'t> Block<'t> {
    /// Whether the key has a mapping, and no value in its line or list below.
    fn is_mapping(&self) -> bool {
        let first = self.body.iter().find(|line| !is_aside(line));
        self.line.trim_end().ends_with(':')
            && first.is_some_and(|line| !line.trim_start().starts_with('-'))
    }

    fn write(&self, lines: &mut Vec<&'t str>) {
        lines.extend(&self.lead);
        lines.push(self.line);
        lines.extend(&self.body);
    }
}

/// `template` with `changes`: a key of both that has keys below is merged, any other key of the
/// changes replaces that of the template or is added.
pub(super) fn apply(template: &str, changes: &str) -> String {
    let lines = merge(template.lines().collect(), changes.lines().collect());
    lines
        .into_iter()
        .map(|line| line.to_owned() + "\n")
        .collect()
}

/// The keys of one mapping of a text: of `Parameters`, for example.
pub(super) fn keys<'t>(text: &'t str, of: &str) -> Vec<&'t str> {
    let (blocks, _) = blocks(text.lines().collect());
    let mapping = blocks.into_iter().find(|block| block.key == of);
    mapping.map_or_else(Vec::new, |mapping| {
        let (blocks, _) = self::blocks(mapping.body);
        blocks.iter().map(|block| block.key).collect()
    })
}

/// The keys of `changes` that would change nothing, each with the one of the template that may be
/// meant: a resource or parameter that the template does not have and that has no type of its own,
/// and a key that differs from one beside it by two letters at most.
pub(super) fn misspelt<'t>(template: &'t str, changes: &'t str) -> Vec<(&'t str, &'t str)> {
    let mut typos = Vec::new();
    let lines = template.lines().collect();
    compare(lines, changes.lines().collect(), &[], &mut typos);
    typos
}

fn compare<'t>(
    template: Vec<&'t str>,
    changes: Vec<&'t str>,
    path: &[&str],
    typos: &mut Vec<(&'t str, &'t str)>,
) {
    let (mut targets, (changes, _)) = (blocks(template).0, blocks(changes));
    let names: Vec<&str> = targets.iter().map(|block| block.key).collect();
    for change in changes {
        if let Some(at) = names.iter().position(|name| *name == change.key) {
            if let Some(block) = targets
                .get_mut(at)
                .filter(|it| it.is_mapping() && change.is_mapping())
            {
                compare(
                    mem::take(&mut block.body),
                    change.body,
                    &[path, &[change.key]].concat(),
                    typos,
                );
            }
            continue;
        }
        let has_type = iter::once(&change.line)
            .chain(&change.body)
            .any(|line| line.contains("Type:"));
        let near = nearest(change.key, &names)
            .map(|(letters, near)| (letters <= 2 && change.key.len() > 5, near));
        match (path, near) {
            (["Parameters" | "Resources"], Some((_, near))) if !has_type => {
                typos.push((change.key, near))
            }
            ([_], _) => {}
            (_, Some((true, near))) => typos.push((change.key, near)),
            _ => {}
        }
    }
}

fn merge<'t>(template: Vec<&'t str>, changes: Vec<&'t str>) -> Vec<&'t str> {
    let (blocks, tail) = blocks(template);
    let (mut changes, _) = self::blocks(changes);
    let mut lines = Vec::new();
    for mut block in blocks {
        let Some(at) = changes.iter().position(|it| it.key == block.key) else {
            block.write(&mut lines);
            continue;
        };
        let change = changes.remove(at);
        if block.is_mapping() && change.is_mapping() {
            block.body = merge(block.body, change.body);
            block.write(&mut lines);
        } else {
            change.write(&mut lines);
        }
    }
    changes.iter().for_each(|change| change.write(&mut lines));
    lines.extend(tail);
    lines
}

/// The keys of a mapping, and the comments and empty lines after the last one.
fn blocks(lines: Vec<&str>) -> (Vec<Block<'_>>, Vec<&str>) {
    let indent = lines
        .iter()
        .find(|line| !is_aside(line))
        .map_or(0, |line| indent(line));
    let (mut blocks, mut aside) = (Vec::<Block<'_>>::new(), Vec::new());
    for line in lines {
        if is_aside(line) {
            aside.push(line);
        } else if self::indent(line) <= indent {
            let key = line
                .split(": ")
                .next()
                .unwrap_or(line)
                .trim()
                .trim_end_matches(':');
            let lead = mem::take(&mut aside);
            blocks.push(Block {
                key,
                lead,
                line,
                body: Vec::new(),
            });
        } else if let Some(last) = blocks.last_mut() {
            last.body.append(&mut aside);
            last.body.push(line);
        }
    }
    (blocks, aside)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// A comment or an empty line.
fn is_aside(line: &str) -> bool {
    let text = line.trim_start();
    text.is_empty() || text.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_replace_add_and_keep_what_they_do_not_name() {
        let template = "\
# head
A:
  # of b
  B:
    C: 1
    D: [x]

  E:
    - y

F:
  G: 2
";
        let changes = "\
# mine
A:
  B:
    C: 3
    H:
      I: 4
  E:
    - z
J: 5
";
        let expected = "\
# head
A:
  # of b
  B:
    C: 3
    D: [x]
    H:
      I: 4
  E:
    - z

F:
  G: 2
J: 5
";
        assert_eq!(apply(template, changes), expected);
        assert_eq!(apply(template, "# nothing\n"), template);
        assert_eq!(apply(template, ""), template);
    }

    #[test]
    fn a_change_that_would_change_nothing_is_found() {
        let template = "\
Parameters:
  Stage: {Type: String}
Resources:
  Worker:
    Type: AWS::Serverless::Function
    Properties:
      Environment:
        Variables:
          A2A_TABLE: !Ref Table
";
        let changes = "\
Resource:
  Worker: {}
Parameters:
  Stagee: {Default: x}
  Mine: {Type: String}
Resources:
  Wroker:
    Properties: {MemorySize: 1}
  Worker2:
    Type: AWS::SQS::Queue
  Worker:
    Properties:
      Enviroment: {}
      Timeout: 60
      Environment:
        Variables:
          PRICES: x
Outputs:
  Mine: {Value: x}
";
        let expected = [
            ("Resource", "Resources"),
            ("Stagee", "Stage"),
            ("Wroker", "Worker"),
            ("Enviroment", "Environment"),
        ];
        assert_eq!(misspelt(template, changes), expected);
        assert_eq!(keys(template, "Parameters"), ["Stage"]);
    }
}
