//! The common part of sending and receiving calls: buffers, `struct msghdr` and control messages (RFC 6458 §5).

use super::ast::Expr;
use super::socket::{CallFault, wrong};
use super::sockopt::{Fields, number, show};

/// The longest message that a script can send.
const LONGEST: usize = 1 << 24;

/// The fields of a control message.
pub(super) const CONTROL: [&str; 4] = ["cmsg_len", "cmsg_level", "cmsg_type", "cmsg_data"];

/// `struct msghdr`.
pub(super) fn header(expr: Option<&Expr>) -> Result<Fields<'_>, CallFault> {
    let known =
        ["msg_name", "msg_namelen", "msg_iov", "msg_iovlen", "msg_control", "msg_controllen", "msg_flags"];
    Fields::of("the second argument", expr.unwrap_or(&Expr::Any), &known)
}

pub(super) fn controls<'e>(header: &Fields<'e>) -> Result<&'e [Expr], CallFault> {
    match header.expr("msg_control") {
        None => Ok(&[]),
        Some(Expr::List(list)) => Ok(list),
        Some(other) => wrong(format!("msg_control takes a list, not {}", show(other))),
    }
}

/// Bytes of all buffers: `{iov_base=..., iov_len=500}` or `{..., 500}`.
pub(super) fn gathered(iov: Option<&Expr>) -> Result<usize, CallFault> {
    let Some(Expr::List(list)) = iov else { return wrong("buffers are a list [{..., LENGTH}]") };
    let mut sum: usize = 0;
    for buffer in list {
        let size = match buffer {
            Expr::Fields(fields) => fields.iter().rfind(|(key, _)| key == "iov_len" || key.is_empty()),
            _ => None,
        };
        sum = sum.saturating_add(length(size.map(|(_, size)| size))?);
    }
    length(Some(&Expr::Integer(sum as i128)))
}

pub(super) fn length(expr: Option<&Expr>) -> Result<usize, CallFault> {
    match expr.and_then(number).map(usize::try_from) {
        Some(Ok(size)) if size <= LONGEST => Ok(size),
        _ => wrong(format!("a length is a number of bytes, at most {LONGEST}")),
    }
}
