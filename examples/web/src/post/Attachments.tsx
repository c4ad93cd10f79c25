import { useState } from "react";
import { graphql, useFragment } from "react-relay";
import type { Attachments_post$data, Attachments_post$key } from "./__generated__/Attachments_post.graphql";

type File = Attachments_post$data["attachments"][number];

/** The pictures and videos of a post. Sensitive ones are not even loaded until the reader asks for them. */
export function Attachments({ post }: { post: Attachments_post$key }) {
  const { attachments } = useFragment(
    graphql`
      fragment Attachments_post on Post {
        attachments {
          kind
          url
          previewUrl
          width
          height
          alt
          sensitive
        }
      }
    `,
    post,
  );
  if (attachments.length === 0) return null;
  return (
    <ul className={attachments.length > 1 ? "files files-several" : "files"} aria-label="Attachments">
      {attachments.map((file, place) => (
        <li key={place}>
          <Attachment file={file} />
        </li>
      ))}
    </ul>
  );
}

function Attachment({ file }: { file: File }) {
  const { kind, url, previewUrl, alt, sensitive } = file;
  const [isShown, setIsShown] = useState(!sensitive);
  const size = { width: file.width ?? undefined, height: file.height ?? undefined };
  const isVideo = kind === "VIDEO";
  if (!isShown) {
    return (
      <button className="sensitive" onClick={() => setIsShown(true)}>
        <strong>{isVideo ? "Sensitive video" : "Sensitive picture"}</strong>
        {alt && <span className="quiet">{alt}</span>}
        <span className="sensitive-show">Show</span>
      </button>
    );
  }
  if (isVideo) {
    return <video src={url} poster={previewUrl ?? undefined} {...size} controls preload="none" aria-label={alt || "Video"} />;
  }
  return (
    <a href={url} target="_blank" rel="noopener noreferrer" aria-label={alt ? undefined : "Picture without a description"}>
      <img src={previewUrl ?? url} alt={alt} {...size} loading="lazy" decoding="async" referrerPolicy="no-referrer" />
    </a>
  );
}
