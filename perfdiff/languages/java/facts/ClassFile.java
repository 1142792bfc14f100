package perfdiff.facts;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;

/** One class file, written as JSON. */
final class ClassFile {
    private static final int MAGIC = 0xCAFEBABE;
    private static final int STATIC = 0x0008;
    private static final String TYPE = "\\[*+(?:[BCDFIJSZ]|L[^;\\[]++;)";
    private static final Pattern DESCRIPTOR = Pattern.compile(TYPE + "|\\((?:" + TYPE + ")*+\\)(?:V|" + TYPE + ")");

    private final DataInputStream in;
    private Pool pool;

    ClassFile(DataInputStream in) {
        this.in = in;
    }

    void write(Json json) throws IOException {
        if (in.readInt() != MAGIC) {
            throw new IOException("it is no class file");
        }
        in.readUnsignedShort();
        int version = in.readUnsignedShort();
        pool = new Pool(in);
        int access = in.readUnsignedShort();
        String name = Objects.requireNonNull(pool.name(in.readUnsignedShort()));
        String parent = pool.name(in.readUnsignedShort());
        List<String> interfaces = new ArrayList<>();
        for (int count = in.readUnsignedShort(); count > 0; count--) {
            interfaces.add(pool.name(in.readUnsignedShort()));
        }
        List<Member> fields = members();
        List<Member> methods = members();
        json.open('{').key("name").string(name).key("version").number(version).key("access").number(access);
        json.key("parent").string(parent).key("interfaces").strings(interfaces);
        attributes(json);
        json.key("fields").open('[');
        for (Member field : fields) {
            field(json, field);
        }
        json.close(']').key("methods").open('[');
        for (Member method : methods) {
            method(json, method, name);
        }
        json.close(']').close('}');
    }

    private static final class Attribute {
        final String name;
        final byte[] data;

        Attribute(String name, byte[] data) {
            this.name = name;
            this.data = data;
        }

        DataInputStream in() {
            return new DataInputStream(new ByteArrayInputStream(data));
        }
    }

    private static final class Member {
        int access;
        String name;
        String descriptor;
        List<Attribute> attributes;
    }

    private List<Member> members() throws IOException {
        List<Member> found = new ArrayList<>();
        for (int count = in.readUnsignedShort(); count > 0; count--) {
            Member member = new Member();
            member.access = in.readUnsignedShort();
            member.name = pool.text(in.readUnsignedShort());
            member.descriptor = pool.text(in.readUnsignedShort());
            if (!DESCRIPTOR.matcher(member.descriptor).matches() || member.name.isEmpty()) {
                throw new IOException("it is damaged: a member of it has no type");
            }
            member.attributes = attributes(in);
            found.add(member);
        }
        return found;
    }

    private List<Attribute> attributes(DataInputStream from) throws IOException {
        List<Attribute> found = new ArrayList<>();
        for (int count = from.readUnsignedShort(); count > 0; count--) {
            String name = pool.text(from.readUnsignedShort());
            found.add(new Attribute(name, bytes(from)));
        }
        return found;
    }

    /** Returns as many bytes as a length before them says, which a damaged file may put at anything. */
    static byte[] bytes(DataInputStream from) throws IOException {
        int length = from.readInt();
        if (length < 0 || length > from.available()) {
            throw new IOException("it is damaged: a part of it is longer than the file");
        }
        byte[] data = new byte[length];
        from.readFully(data);
        return data;
    }

    private void attributes(Json json) throws IOException {
        String source = null;
        String signature = null;
        String[] enclosing = null;
        List<String> annotations = new ArrayList<>();
        List<String[]> inner = new ArrayList<>();
        List<String[]> components = null;
        for (Attribute one : attributes(in)) {
            DataInputStream data = one.in();
            switch (one.name) {
                case "SourceFile":
                    source = pool.text(data.readUnsignedShort());
                    break;
                case "Signature":
                    signature = pool.text(data.readUnsignedShort());
                    break;
                case "EnclosingMethod":
                    String owner = pool.name(data.readUnsignedShort());
                    int method = data.readUnsignedShort();
                    String[] named = method == 0 ? new String[2] : pool.nameAndType(method);
                    enclosing = new String[] {owner, named[0], named[1]};
                    break;
                case "RuntimeVisibleAnnotations":
                    annotations = Annotations.read(data, pool);
                    break;
                case "InnerClasses":
                    for (int count = data.readUnsignedShort(); count > 0; count--) {
                        String name = pool.name(data.readUnsignedShort());
                        String outer = pool.name(data.readUnsignedShort());
                        String simple = pool.text(data.readUnsignedShort());
                        inner.add(new String[] {name, outer, simple, Integer.toString(data.readUnsignedShort())});
                    }
                    break;
                case "BootstrapMethods":
                    int count = data.readUnsignedShort();
                    pool.bootstraps = new String[count];
                    pool.bootstrapArguments = new int[count][];
                    for (int i = 0; i < count; i++) {
                        pool.bootstraps[i] = pool.handle(data.readUnsignedShort());
                        pool.bootstrapArguments[i] = new int[data.readUnsignedShort()];
                        for (int j = 0; j < pool.bootstrapArguments[i].length; j++) {
                            pool.bootstrapArguments[i][j] = data.readUnsignedShort();
                        }
                    }
                    break;
                case "Record":
                    components = new ArrayList<>();
                    for (int left = data.readUnsignedShort(); left > 0; left--) {
                        components.add(new String[] {pool.text(data.readUnsignedShort()), pool.text(data.readUnsignedShort())});
                        attributes(data);
                    }
                    break;
                default:
            }
        }
        json.key("source").string(source).key("signature").string(signature);
        json.key("enclosing").strings(enclosing == null ? List.of() : java.util.Arrays.asList(enclosing));
        json.key("annotations").strings(annotations).key("inner").open('[');
        for (String[] one : inner) {
            json.open('[').string(one[0]).string(one[1]).string(one[2]).number(Long.parseLong(one[3])).close(']');
        }
        json.close(']').key("components");
        if (components == null) {
            json.string(null);
        } else {
            json.open('[');
            for (String[] one : components) {
                json.strings(List.of(one));
            }
            json.close(']');
        }
    }

    private void field(Json json, Member field) throws IOException {
        String signature = null;
        String constant = null;
        List<String> annotations = new ArrayList<>();
        for (Attribute one : field.attributes) {
            switch (one.name) {
                case "Signature":
                    signature = pool.text(one.in().readUnsignedShort());
                    break;
                case "ConstantValue":
                    constant = pool.constant(one.in().readUnsignedShort());
                    break;
                case "RuntimeVisibleAnnotations":
                    annotations = Annotations.read(one.in(), pool);
                    break;
                default:
            }
        }
        json.open('{').key("name").string(field.name).key("descriptor").string(field.descriptor).key("access").number(field.access);
        json.key("signature").string(signature).key("constant").string(constant).key("annotations").strings(annotations).close('}');
    }

    private void method(Json json, Member method, String owner) throws IOException {
        String signature = null;
        Code code = null;
        List<String> annotations = new ArrayList<>();
        List<String> parameters = new ArrayList<>();
        for (Attribute one : method.attributes) {
            DataInputStream data = one.in();
            switch (one.name) {
                case "Signature":
                    signature = pool.text(data.readUnsignedShort());
                    break;
                case "RuntimeVisibleAnnotations":
                    annotations.addAll(Annotations.read(data, pool));
                    break;
                case "RuntimeVisibleParameterAnnotations":
                    annotations.addAll(Annotations.ofParameters(data, pool));
                    break;
                case "MethodParameters":
                    for (int count = data.readUnsignedByte(); count > 0; count--) {
                        parameters.add(pool.text(data.readUnsignedShort()));
                        data.readUnsignedShort();
                    }
                    break;
                case "Code":
                    code = new Code(data, pool, owner);
                    break;
                default:
            }
        }
        json.open('{').key("name").string(method.name).key("descriptor").string(method.descriptor).key("access").number(method.access);
        json.key("signature").string(signature).key("annotations").strings(annotations).key("parameters").strings(parameters);
        json.key("code");
        if (code == null) {
            json.string(null);
        } else {
            code.write(json, method.descriptor, (method.access & STATIC) != 0);
        }
        json.close('}');
    }
}
