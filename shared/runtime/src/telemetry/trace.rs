//! The trace that a request belongs to, as W3C Trace Context writes it.

use sha2::{Digest as _, Sha256};
use std::fmt;

/// The header that carries a trace (W3C Trace Context §3.2).
pub(crate) const TRACEPARENT: &str = "traceparent";

/// A trace and the span that the next request is caused by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace: u128,
    span: u64,
    is_sampled: bool,
}

impl TraceContext {
    /// A new trace, made of two fresh numbers. It is not sampled, since the agent records
    /// no spans of its own. `None` if a number is 0, which no trace may have.
    #[must_use]
    pub(crate) fn new(trace: u128, span: u64) -> Option<Self> {
        (trace != 0 && span != 0).then_some(Self {
            trace,
            span,
            is_sampled: false,
        })
    }

    /// Reads a `traceparent` header. `None` if it is not valid: then a new trace begins.
    #[must_use]
    pub(crate) fn parse(header: &str) -> Option<Self> {
        // W3C Trace Context §3.2.2: `version-trace-parent-flags`, in lower case. A later
        // version may have more members.
        let mut members = header.split('-');
        let mut hex = |digits: usize| {
            let text = members.next()?;
            let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
            (text.len() == digits && text.bytes().all(is_hex)).then_some(text)
        };
        let (version, trace) = (hex(2)?, hex(32)?);
        let (span, flags) = (hex(16)?, hex(2)?);
        if version == "ff" || (version == "00" && members.next().is_some()) {
            return None;
        }
        let flags = u8::from_str_radix(flags, 16).ok()?;
        Some(Self {
            is_sampled: flags & 1 == 1,
            ..Self::new(
                u128::from_str_radix(trace, 16).ok()?,
                u64::from_str_radix(span, 16).ok()?,
            )?
        })
    }

    /// Reads the trace header of AWS X-Ray: `Root=1-<8>-<24>;Parent=<16>;Sampled=<0|1>`
    /// (AWS X-Ray developer guide, "Tracing header"). A trace id of X-Ray without its
    /// punctuation is one of W3C.
    #[must_use]
    pub(crate) fn parse_x_ray(header: &str) -> Option<Self> {
        let member = |name: &str| {
            let mut members = header.split(';').filter_map(|it| it.trim().split_once('='));
            members
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value)
        };
        let (time, rest) = member("Root")?.strip_prefix("1-")?.split_once('-')?;
        let flags = u8::from(member("Sampled") == Some("1"));
        // A root without a parent is its own first span.
        let span = member("Parent").or_else(|| rest.get(8..))?;
        Self::parse(&format!("00-{time}{rest}-{span}-{flags:02x}"))
    }

    /// The same trace with the span that `names` identifies. The same names give the same
    /// span, so a turn that runs again needs no stored span id.
    #[must_use]
    pub(crate) fn child(self, names: &[&str]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.to_string());
        for name in names {
            hash.update([0_u8]);
            hash.update(name);
        }
        let span = hash.finalize().into_iter().take(8);
        let span = span.fold(0_u64, |all, byte| (all << 8) | u64::from(byte));
        Self {
            span: span.max(1),
            ..self
        }
    }

    /// The id of the trace: 32 digits of hex.
    #[must_use]
    pub(crate) fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }
}

/// Writes the value of a `traceparent` header.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.trace, self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_valid_traceparent_is_kept_as_it_is() {
        assert_eq!(TraceContext::parse(GOOD).unwrap().to_string(), GOOD);
        let later = format!("cc{}-what-comes-later", GOOD.strip_prefix("00").unwrap());
        assert_eq!(TraceContext::parse(&later).unwrap().to_string(), GOOD);
    }

    #[test]
    fn an_invalid_traceparent_counts_as_absent() {
        let rows = [
            "",
            "nonsense",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ];
        each_row(rows, |bad| {
            assert_eq!(TraceContext::parse(bad), None, "{bad}");
        });
    }

    #[test]
    fn a_trace_of_x_ray_keeps_its_id() {
        let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
        let trace = TraceContext::parse_x_ray(header).unwrap();
        assert_eq!(
            trace.to_string(),
            "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01"
        );
        let alone = TraceContext::parse_x_ray("Root=1-5759e988-bd862e3fe1be46a994272793").unwrap();
        assert_eq!(alone.trace_id(), trace.trace_id());
        let rows = [
            "",
            "Root=1-5759e988",
            "Parent=53995c3f42cd8ad8",
            "Root=2-5759e988-0",
        ];
        each_row(rows, |bad| {
            assert_eq!(TraceContext::parse_x_ray(bad), None, "{bad}");
        });
    }

    #[test]
    fn a_child_stays_in_its_trace_under_another_span() {
        let trace = TraceContext::parse(GOOD).unwrap();
        let child = trace.child(&["turn", "1"]);
        assert_eq!(child.trace_id(), trace.trace_id());
        assert_ne!(child, trace);
        assert_eq!(child, trace.child(&["turn", "1"]));
        assert_ne!(child, trace.child(&["turn1"]));
    }
}
