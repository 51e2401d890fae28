/** Makes a text area as tall as its text; the style sheet sets the limit. */
export function fitHeight(area: HTMLTextAreaElement): void {
  const borders = area.offsetHeight - area.clientHeight;
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + borders}px`;
}
