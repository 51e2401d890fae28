import { useCallback, useEffect, useRef, useState } from "react";

/** How near to the end, in pixels, a reader counts as following along. */
const NEAR = 64;

/**
 * Keeps a scrolling box at its end while its content grows, until the reader
 * scrolls up; it follows again once the reader is back at the end.
 *
 * Attach `box` to the scrolling element and `content` to its only child. What
 * is not a conversation (`on` is false) is read from its top.
 */
export function useStickToBottom(on: boolean) {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const lastTop = useRef(0);
  const [atEnd, setAtEnd] = useState(true);

  const toEnd = useCallback(() => {
    following.current = true;
    setAtEnd(true);
    box.current?.scrollTo({ top: box.current.scrollHeight });
  }, []);

  useEffect(() => {
    const scroller = box.current;
    if (!scroller || !content.current || !on) return;
    const onScroll = () => {
      const left = scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop;
      // Content that grew also puts the end further away: only a move upwards is the reader's.
      if (left <= NEAR) following.current = true;
      else if (scroller.scrollTop < lastTop.current) following.current = false;
      lastTop.current = scroller.scrollTop;
      setAtEnd(following.current);
    };
    const growth = new ResizeObserver(() => {
      if (following.current) scroller.scrollTo({ top: scroller.scrollHeight });
    });
    growth.observe(content.current);
    growth.observe(scroller);
    scroller.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      growth.disconnect();
      scroller.removeEventListener("scroll", onScroll);
    };
  }, [on]);

  return { box, content, atEnd, toEnd };
}
