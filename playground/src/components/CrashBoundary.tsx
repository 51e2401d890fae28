import { Component, type ReactNode } from "react";
import { Notice } from "./Notice";

/** Shows what went wrong instead of an empty page. */
export class CrashBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state = { error: null as Error | null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <Notice title="The page stopped working" action="Reload" onAction={() => location.reload()}>
        {this.state.error.message}
      </Notice>
    );
  }
}
