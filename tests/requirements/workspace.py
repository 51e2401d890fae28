"""The workspace, §8 of its reference: file tools, bash, the virtual file system, state, git and fetch."""

from typing import Final

from tests.requirements.owners import LATER, WORKSPACE
from tests.requirements.rows import R, Requirement, table

__all__ = ["ROWS"]

ROWS: Final[tuple[Requirement, ...]] = (
    *table(
        "workspace",
        "workspace §8, tools",
        R("1", WORKSPACE, "read numbers its lines as number, tab, text and reports totalLines."),
        R("2", WORKSPACE, 'A missing file makes read return error data with the words "File not found".'),
        R("3", WORKSPACE, "read of a folder, also of `/`, returns error data that says it is a directory."),
        R(
            "4",
            WORKSPACE,
            "read with offset 3 and limit 2 of a 10-line file gives lines 3 and 4 only, with fromLine 3 and toLine 4.",
        ),
        R(
            "5",
            WORKSPACE,
            "The stored result of reading an image has kind, path, name, mediaType and sizeBytes, and neither "
            "data nor content.",
        ),
        R("6", WORKSPACE, "The model sees an image as a content list with base64 `image-data` and no `file-data`."),
        R(
            "7",
            WORKSPACE,
            "With a generic or missing MIME type the signatures of PNG, JPEG, GIF and WebP are recognised.",
        ),
        R("8", WORKSPACE, "A PDF signature gives kind `file`; the model sees `file-data` with the file name."),
        R("9", WORKSPACE, "An octet-stream with a NUL byte gives kind `binary`, unsupported, without content."),
        R("10", WORKSPACE, "write of `hello world` reports bytesWritten 11 and lines 1."),
        R("11", WORKSPACE, "write makes missing parent folders at any depth."),
        R("12", WORKSPACE, "edit replaces an exact match."),
        R("13", WORKSPACE, "edit of a missing file returns error data."),
        R("14", WORKSPACE, 'edit without a match returns an error with "not found".'),
        R("15", WORKSPACE, 'edit with two exact matches returns an error with "2 times" (overlapping ones count).'),
        R("16", WORKSPACE, "edit with an empty old_string on a missing path creates the file."),
        R("17", WORKSPACE, "edit that matches only when runs of spaces and tabs are taken as one sets fuzzyMatch."),
        R("18", WORKSPACE, 'edit with two such loose matches returns an error with "multiple locations".'),
        R("19", WORKSPACE, "list shows a folder as `src/` and files with their size."),
        R("20", WORKSPACE, "find `/src/**/*.ts` gives the two files that match."),
        R("21", WORKSPACE, "grep with a regular expression counts matches and files with matches."),
        R("22", WORKSPACE, "grep with fixedString takes parentheses literally."),
        R("23", WORKSPACE, "grep ignores case unless caseSensitive is set."),
        R("24", WORKSPACE, "grep with contextLines 1 returns the neighbouring lines."),
        R("25", WORKSPACE, "grep skips files over 1 MiB (1,048,576 bytes) and says so in filesSkipped and note."),
        R("26", WORKSPACE, "bash creates, updates and deletes workspace files and reports each under changedFiles."),
        R(
            "27",
            WORKSPACE,
            'bash writes nothing back from /bin, /usr, /dev and /proc: created is `["/ok.txt"]`, and there '
            "are no directories.",
        ),
        R(
            "28",
            WORKSPACE,
            "A script's stdout, stderr and exit code (9, say) are data in the result, not an exception.",
        ),
        R(
            "29",
            WORKSPACE,
            "A file over maxWorkspaceFileBytes is in skippedFiles; writing to it leaves its content and gives "
            'an errors entry with "protected workspace file".',
        ),
        R("30", WORKSPACE, "bash writes back and reports an empty folder made or removed."),
        R(
            "31",
            WORKSPACE,
            "Of 1,005 files in one folder, with the limit raised to 1,100, bash mounts the ones past the first "
            "page of 1,000 too.",
        ),
        R(
            "32",
            WORKSPACE,
            "bash with a timeout of 1 ms on an endless loop gives a non-zero exit and a non-empty stderr.",
        ),
    ),
    *table(
        "workspace",
        "workspace §8, Workspace",
        R(
            "33",
            WORKSPACE,
            "A workspace works over a custom SQL back end, synchronous or asynchronous.",
            note="Candidate for a divergence: our storage shows no SQL handle above its contract; what can be "
            "swapped is the object with the file methods.",
        ),
        R("34", WORKSPACE, "The workspace's name may be a string or a function asked when it is needed."),
        R(
            "35",
            WORKSPACE,
            "Two writes that race into one missing folder both succeed, and one create event is sent for the folder.",
        ),
        R(
            "36",
            WORKSPACE,
            "A second workspace of the same name with the same options is fine; another threshold or prefix "
            "raises and names the old and the new value.",
        ),
        R(
            "37",
            WORKSPACE,
            "Reading a missing file gives None, reading a folder raises, writing `/` raises, and a custom MIME "
            "type is kept.",
        ),
        R(
            "38",
            WORKSPACE,
            "exists is true for folders, links and dangling links; file_exists only for files, looked at "
            "through links.",
        ),
        R("39", WORKSPACE, "stat describes files and folders and is None for what is missing."),
        R(
            "40",
            WORKSPACE,
            "delete_file gives True or False, raises on a folder, and removes a link and not its target.",
        ),
        R(
            "41",
            WORKSPACE,
            "mkdir, alone and recursive; an existing folder and a missing parent raise unless recursive.",
        ),
        R("42", WORKSPACE, "read_dir lists children, pages by limit and offset, and is empty for an empty folder."),
        R(
            "43",
            WORKSPACE,
            "rm removes a file and an empty folder; ENOTEMPTY unless recursive, ENOENT unless force, and never `/`.",
        ),
        R("44", WORKSPACE, "get_workspace_info counts files, folders and bytes."),
        R(
            "45",
            WORKSPACE,
            "Paths are normalised: missing leading slash, trailing and double slashes, `.`, `..`, and `..` at "
            "the root.",
        ),
        R(
            "46",
            WORKSPACE,
            "Streams make a binary-safe round trip: parents made, overwriting works, readable by read_file, "
            "None if missing.",
        ),
        R(
            "47",
            WORKSPACE,
            "Links: create, readlink, lstat against stat, relative targets, chains; EINVAL for readlink of no "
            "link, EEXIST for an occupied path.",
        ),
        R(
            "48",
            WORKSPACE,
            "Change events come for write, overwrite, delete, mkdir, rm and symlink, and cost nothing without "
            "a listener.",
        ),
        R(
            "49",
            WORKSPACE,
            "Bytes with NULs come back unchanged; a text over bytes, or bytes over a text, switches the stored "
            "encoding.",
        ),
        R("50", WORKSPACE, "Writing text or bytes through a link writes its target."),
        R(
            "51",
            WORKSPACE,
            "cp copies files, folders, nested folders and links; EISDIR for a folder unless recursive, ENOENT "
            "for a missing source.",
        ),
        R("52", WORKSPACE, "mv moves and renames files and folders."),
        R(
            "53",
            WORKSPACE,
            "diff is empty for equal texts, shows additions, removals and changes under hunk headers, and "
            "raises ENOENT for a missing file.",
        ),
        R("54", WORKSPACE, "diff refuses a side of more than 10,000 lines and takes one within the limit."),
        R(
            "55",
            WORKSPACE,
            "glob knows extensions, `**`, `?`, braces and classes, finds files and folders, nothing, or an exact path.",
        ),
        R(
            "56",
            WORKSPACE,
            "Recursive rm of a name with `%` or `_` touches nothing else; siblings that share the prefix, or "
            "sort next to it as `0` does, stay.",
        ),
        R(
            "57",
            WORKSPACE,
            "glob inside folders whose names hold `%` or `_` finds what is there and nothing of a sibling that "
            "shares the prefix.",
        ),
        R(
            "58",
            WORKSPACE,
            "A link target that is empty, blank or over 4,096 characters is refused; so is a path over the limit.",
        ),
        R(
            "59",
            WORKSPACE,
            "Observability events for write (with an update flag), read, delete, mkdir, rm, cp and mv carry "
            "time and name; none after unsubscribing.",
        ),
        R("60", WORKSPACE, "All files are there after an eviction, and namespaces and names stay apart."),
        R("61", WORKSPACE, "A bare proxy object with the file methods is enough to drive `state.*`."),
    ),
    *table(
        "workspace",
        "workspace §8, state",
        R(
            "62",
            WORKSPACE,
            "state reads, writes and appends; JSON is written with 2 spaces and a final newline and reads back.",
        ),
        R("63", WORKSPACE, "The error for invalid JSON names the file."),
        R("64", WORKSPACE, "glob is sorted, and diff_content labels its two sides."),
        R("65", WORKSPACE, "search_text: literal, case-insensitive, whole word, and regular expression with columns."),
        R("66", WORKSPACE, "search_text gives the lines of context asked for and stops at max_matches."),
        R("67", WORKSPACE, "find by type, by path pattern, and for empty files."),
        R("68", WORKSPACE, "query_json answers `.app.flags[1]`; update_json applies set, append and delete in order."),
        R("69", WORKSPACE, "replace_in_file with whole_word leaves `food` alone when it replaces `foo`."),
        R(
            "70",
            WORKSPACE,
            "search_files and replace_in_files over a pattern; a dry run leaves the files and gives the exact diff.",
        ),
        R("71", WORKSPACE, "apply_edits: dry run, unchanged content noticed and not written, files created."),
        R("72", WORKSPACE, "plan_edits over replace, write_json and write, then apply_edit_plan, dry and for real."),
        R("73", WORKSPACE, "plan_edits with a replace in a missing file raises ENOENT."),
        R(
            "74",
            WORKSPACE,
            "A batch whose later write fails is rolled back, or left partial with rollback off; the error "
            "carries operation and rolledBack.",
        ),
        R("75", WORKSPACE, "copy_tree and move_tree, walk_tree with a depth limit, summarize_tree."),
        R("76", WORKSPACE, "Archives are created, listed and extracted; gzip round trip, SHA-256, detect_file."),
        R(
            "77",
            WORKSPACE,
            "The in-memory file system: stat against lstat, link chains, relative links, ELOOP, hard links, "
            "chmod, utimes, root guarded.",
        ),
        R("78", WORKSPACE, "Parameter table, connector and type text each know every method of the back end."),
        R("79", WORKSPACE, "Reading methods are marked to run again on resume, writing ones to be logged."),
        R(
            "80",
            WORKSPACE,
            "Object arguments are mapped to positions; positional ones are refused with a text that helps, a "
            "missing parameter is named, optional ones missing at the end are trimmed.",
        ),
        R("81", WORKSPACE, "Bytes survive the connector; the provider takes both calling conventions."),
        R(
            "82",
            LATER,
            "Sandboxed code can use state concurrently, and outside fetches are blocked by default.",
            note="Needs the code-mode sandbox.",
        ),
        R(
            "83",
            LATER,
            "The execute tool: tools.*, state.*, pauses for approval, an error as outcome, the one-liner.",
            note="Needs code mode.",
        ),
    ),
    *table(
        "workspace",
        "workspace §8, git",
        R(
            "84",
            WORKSPACE,
            "Git: init, add, commit, log, status labels, branch and checkout, add `.`, kinds of diff, rm, "
            "remotes, default author, deletions staged, clone.",
        ),
        R(
            "85",
            WORKSPACE,
            "Git credentials: a call's own win over the default ones, they go to network commands only, and "
            "never show in types or results.",
        ),
        R("86", WORKSPACE, "Unlinking a missing file through the git adapter raises with code ENOENT."),
    ),
    *table(
        "workspace",
        "workspace §8, fetch",
        R(
            "87",
            WORKSPACE,
            "Fetch tools: off by default, wrong options refused, tool names, allow list, no private hosts, no "
            "credentials in URLs, each redirect checked, sizes capped, spill, headers filtered, default "
            "Accept, timeout and abort as different codes, events, capability text.",
        ),
    ),
)
